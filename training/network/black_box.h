// Black boxes to compare with: affine maps and plain networks from the state to the velocity.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <functional>
#include <string>

#include "network/motion.h"

namespace lcp::training {

struct BlackBoxOptions {
  std::int64_t iterations = 4000;  ///< of Adam, for each network
  std::int64_t batch_size = 128;
  std::int64_t seed = 0;
};

/// The best of a grid by its error on the validation data.
struct BlackBox {
  std::string name;  ///< such as "relu 64 x 64, learning rate 0.003"
  double validation_error;
  std::function<torch::Tensor(const torch::Tensor& x)> predict;
};

/// Fits the affine map of least squares, and trains networks by Adam with a step size that falls along a cosine:
/// relu and tanh, one or two hidden layers of 16, 64 or 128 units, first step sizes .001, .003 and .01, in float64. x
/// and v_next are divided by input_unit [p] and output_unit [d]; errors are relative to the latter.
///   progress: called with the completed fraction, 0 to 1.
BlackBox best_black_box(const Motion& training, const Motion& validation, const torch::Tensor& input_unit,
                        const torch::Tensor& output_unit, const BlackBoxOptions& options,
                        const std::function<void(double)>& progress = {});

}  // namespace lcp::training
