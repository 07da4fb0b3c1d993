// What a learned block does, and what its data could not tell.
#pragma once

#include <torch/nn/module.h>
#include <torch/types.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "lcp/learning/identifiability.h"
#include "run/command_line.h"
#include "simulation/physics_flags.h"
#include "sliding_block/samples.h"

namespace lcp::training {

/// Root of the mean square of all elements.
double rmse(const torch::Tensor& error);

/// The share of the resting elements of `truth` whose prediction is within `tolerance` of 0; NaN where nothing rests.
double sticking_fraction(const torch::Tensor& predicted, const torch::Tensor& truth, double tolerance);

/// (v, u, 1), [n, 3].
torch::Tensor affine_features(const Samples& samples);

/// What v and u alone tell of v_next: the affine map that fits the training data best, on the held-out steps, m/s.
torch::Tensor affine_prediction(const Samples& training, const Samples& heldout);

/// Of predictions of v_next: heldout_rmse, sticking_exact_zero_fraction, sticking_close_fraction (within dt mu g /
/// 1000), heldout_samples, heldout_unsolved, heldout_sticking_fraction.
nlohmann::json heldout_metrics(const torch::Tensor& predicted, const Samples& heldout, const PhysicsFlags& block);

/// Loads out/model.pt, as its user would, and compares it with the held-out steps and, over 20 rollouts of 50 steps
/// under random forces, with the block of the flags; writes out/rollouts.csv. Returns heldout_metrics, rollout_rmse and
/// rollout_unsolved, and warns of unsolved steps.
nlohmann::json evaluate_model(const RunFlags& run, const Samples& heldout, const PhysicsFlags& block);

/// Parameters in groups that do not share samples' residuals, each with what its data leave open.
class Gauge {
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

/// Nested lists of its numbers.
nlohmann::json to_json(const torch::Tensor& x);

/// Writes metrics.json, draws the program's figures, and shows what the run came to.
void conclude(const CommandLine& line, const RunFlags& run, const nlohmann::json& metrics);

}  // namespace lcp::training
