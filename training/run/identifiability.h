// Which parameters of a least-squares fit the data determine, and which they do not.
#pragma once

#include <torch/nn/module.h>
#include <torch/types.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace lcp::training {

/// A basis of the span of given vectors in which each vector involves few entries.
struct EchelonForm {
  torch::Tensor rows;                ///< [k, n], the reduced row echelon form, by the largest pivots
  std::vector<std::int64_t> pivots;  ///< for each row the column in which it is 1 and all other rows are 0
};

/// The echelon form of linearly independent rows, [k, n], float64.
EchelonForm reduced_echelon_form(const torch::Tensor& rows);

/// Reports which parameters, or combinations of them, a least-squares fit determines. Parameters are added in groups;
/// the residuals of a group depend on the parameters of that group only.
class IdentifiabilityReport {
 public:
  /// Adds a group. jacobian: [residuals, parameters], float64. names: the names of the parameters.
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
