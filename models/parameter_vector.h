// The parameters of a module as one vector.
#pragma once

#include <torch/nn/module.h>
#include <torch/types.h>

#include <cstdint>
#include <utility>

namespace lcp::nn {

/// The number of all parameters of a module.
std::int64_t parameter_count(const torch::nn::Module& module);

/// All parameters in the order of named_parameters(), [parameter_count(module)]; differentiable.
at::Tensor parameter_vector(const torch::nn::Module& module);

/// Copies a vector of this form to the parameters.
void assign_parameters(torch::nn::Module& module, const at::Tensor& theta);

/// Divides vectors of parameters, theta [..., size], into the parameters, one after another.
class ParameterReader {
 public:
  explicit ParameterReader(at::Tensor theta) : theta_(std::move(theta)) {}

  /// The next `count` numbers, [..., count].
  at::Tensor next(std::int64_t count);

  /// The next parameter, which has the shape of `parameter`: [..., its shape].
  at::Tensor next(const at::Tensor& parameter) {
    const at::Tensor numbers = next(parameter.numel());
    return parameter.dim() == 0 ? numbers.squeeze(-1) : numbers.unflatten(-1, parameter.sizes());
  }

 private:
  at::Tensor theta_;
  std::int64_t first_ = 0;
};

}  // namespace lcp::nn
