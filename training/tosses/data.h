// The tosses that a program learns from: recorded ones, or simulated ones where it is given none.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "run/command_line.h"
#include "tosses/cube.h"
#include "tosses/tosses.h"

namespace lcp::training {

struct TossData {
  std::filesystem::path folder;  ///< of recorded tosses; none: they are simulated
  std::int64_t simulated = 96;
  double length = 0.0524;  ///< m for a unit of length in the files
  double rate = 148;       ///< samples per second

  void add_to(CommandLine& line);

  /// The recorded tosses, or simulated ones of this cube.
  std::vector<Toss> load(const Cube& cube, const CubeContact& contact, std::int64_t seed) const;
};

}  // namespace lcp::training
