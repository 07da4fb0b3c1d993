// The motion that train_network learns from: steps of any system, simulated or read from a file.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <optional>
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
};

}  // namespace lcp::training
