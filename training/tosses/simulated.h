// Tosses of a simulated cube, as a camera would record them.
#pragma once

#include <cstdint>
#include <vector>

#include "tosses/cube.h"
#include "tosses/tosses.h"

namespace lcp::training {

struct SimulatedTosses {
  std::int64_t count = 0;
  double rate = 148;                ///< samples per second
  double position_noise = 2e-5;     ///< m, standard deviation
  double orientation_noise = 5e-4;  ///< rad, standard deviation, about each axis
};

/// Throws of the cube from about its height in the recorded tosses, with about their speeds, until it rests, but at
/// most 200 samples; the exact motion is computed with eight times the substeps of `contact`. Positions and
/// orientations have noise; velocities are their differences behind a median filter of five samples, so that those
/// near an impact mix what was before it with what came after, as the recorded ones do.
std::vector<Toss> simulate_tosses(const Cube& cube, const CubeContact& contact, const SimulatedTosses& options,
                                  std::int64_t seed);

}  // namespace lcp::training
