#include "models/parameter_vector.h"

#include <torch/utils.h>

#include <vector>

namespace lcp::nn {

std::int64_t parameter_count(const torch::nn::Module& module) {
  std::int64_t count = 0;
  for (const at::Tensor& parameter : module.parameters()) count += parameter.numel();
  return count;
}

at::Tensor parameter_vector(const torch::nn::Module& module) {
  std::vector<at::Tensor> parts;
  for (const at::Tensor& parameter : module.parameters()) parts.push_back(parameter.flatten());
  return at::cat(parts);
}

void assign_parameters(torch::nn::Module& module, const at::Tensor& theta) {
  const torch::NoGradGuard no_grad;
  TORCH_CHECK(theta.dim() == 1 && theta.size(0) == parameter_count(module), "theta must be [", parameter_count(module),
              "]; got ", theta.sizes());
  ParameterReader reader(theta);
  for (at::Tensor& parameter : module.parameters()) parameter.copy_(reader.next(parameter));
}

at::Tensor ParameterReader::next(std::int64_t count) {
  const std::int64_t first = first_;
  first_ += count;
  return theta_.slice(-1, first, first_);
}

}  // namespace lcp::nn
