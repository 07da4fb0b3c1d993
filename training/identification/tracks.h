// Observed positions of bodies, as read from a file.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "run/columns.h"

namespace lcp::training {

/// The tracks of b bodies at equal time steps. Each begins at its own first time.
struct Tracks {
  double dt;               ///< s
  torch::Tensor observed;  ///< [steps + 1, b, k], m or rad, float64; 0 where a shorter track has ended
  torch::Tensor seen;      ///< [steps + 1, b, 1], 1 while the track lasts, then 0

  std::int64_t steps() const { return observed.size(0) - 1; }
  std::int64_t count() const { return observed.size(1); }
};

/// Reads the columns time and `positions`. A track ends where the column `track` changes or, without one, where time
/// falls. Throws a UsageError that names the file, and the line, where times are not equal steps, or a track is shorter
/// than three.
Tracks read_tracks(const std::string& file, const std::vector<std::string>& positions);

/// A table with a row for each observation, which begins with the column track.
TrajectoryTable track_table(const Tracks& tracks);

}  // namespace lcp::training
