// What data determine of the parameters that are fitted to them, and what they leave open.
#pragma once

#include <torch/nn/module.h>
#include <torch/types.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace lcp::training {

/// Which parameters, or combinations of them, a least-squares fit determines. Parameters come in groups whose residuals
/// depend on no other group.
class IdentifiabilityReport {
 public:
  /// jacobian: [residuals, parameters], float64, of all that the fit determines; names: of the parameters.
  void add(const torch::Tensor& jacobian, const std::vector<std::string>& names);

  /// parameters, identifiable_parameters, condition, unidentifiable_directions (in words).
  nlohmann::json json() const;

 private:
  std::int64_t parameters_ = 0;
  std::int64_t rank_ = 0;
  double condition_ = 0;
  std::vector<std::string> directions_;
};

/// d outputs / d parameters, [outputs, parameters], float64; parameters that an output does not depend on have zeros.
torch::Tensor jacobian(const torch::Tensor& outputs, const std::vector<torch::Tensor>& parameters);

/// "name[0]", "name[1]", ... for each number of each trainable parameter of the module, in the order of `jacobian`.
std::vector<std::string> parameter_names(const torch::nn::Module& module);

}  // namespace lcp::training
