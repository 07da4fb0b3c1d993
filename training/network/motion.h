// The motion that train_network learns from: steps of any system, simulated or read from a file.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace lcp::training {

/// Steps of a system, one in each row, float64.
struct Motion {
  torch::Tensor x;       ///< [n, p]: positions, velocities and inputs before the step, in the order of MotionColumns
  torch::Tensor v_next;  ///< [n, d], m/s: the velocities after it

  std::int64_t count() const { return x.size(0); }
  Motion at(const torch::Tensor& rows) const { return {x.index_select(0, rows), v_next.index_select(0, rows)}; }
};

/// The columns of a Motion.
struct MotionColumns {
  std::vector<std::string> positions, velocities, inputs, next;

  /// Those of Motion::x.
  std::vector<std::string> before() const;
  std::int64_t first_velocity() const { return static_cast<std::int64_t>(positions.size()); }
  std::int64_t first_input() const { return first_velocity() + static_cast<std::int64_t>(velocities.size()); }
};

/// Motion from a CSV file.
struct MotionFile {
  MotionColumns columns;
  std::vector<std::string> unused;  ///< the columns that are not read
  Motion known;                     ///< the rows to learn from
  Motion heldout;                   ///< the others; those of a trajectory are consecutive
  std::string heldout_rule;         ///< which rows are held out, in words
  /// The trajectory of each held-out row, [rows of heldout], int64; undefined where the file has neither the column
  /// "trajectory" nor "step".
  torch::Tensor trajectory;
};

/// Reads the columns v and v_next or, for several velocities, v_NAME and v_next_NAME; the inputs u or u_NAME; and the
/// positions x, y, z, x_NAME, y_NAME, z_NAME. Other columns are not used, such as x_next, which is known only after the
/// step. The rows of a trajectory are in the order of the column "step", which counts up by 1, or else in that of the
/// file; a file with steps but without "trajectory" has one trajectory.
///
/// Held out are the last of each kHeldOutOneIn trajectories; of fewer trajectories, the last of kHeldOutOneIn equal
/// parts of each; without trajectories, the last of each kHeldOutOneIn rows. Throws a UsageError that names the file
/// and what it lacks.
MotionFile read_motion(const std::filesystem::path& path);

}  // namespace lcp::training
