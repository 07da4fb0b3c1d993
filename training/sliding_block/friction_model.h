// The model of a sliding block whose LCP in the traditional formulation is learned: flags, data in its units, metrics.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "lcp/nn/traditional_model.h"
#include "run/command_line.h"
#include "run/identifiability.h"
#include "run/physics_flags.h"
#include "sliding_block/samples.h"

namespace lcp::training {

/// (v, u, 1) in the model's units, [n, 3].
torch::Tensor states(const nn::TraditionalModel& model, const Samples& samples);

/// Known solutions in the model's units: (lambda_plus, lambda_minus, gamma), [n, 3].
torch::Tensor solutions(const nn::TraditionalModel& model, const Samples& samples);

/// A mask of the entries of [M|W] that --hold fixes at their true values, [3, 6], bool, by the flag's value. none: no
/// entry. first: M11. diagonal: M11, M22, M31. one_per_row: M13, M23, M31. cone: M13, M23, M31, M33. two_two_one: the
/// first 2, 2 and 1 nonzero entries of M's rows. three_two_one: the same with 3, 2 and 1. upper_triangle: that of M.
/// matrix: M. vector: W.
torch::Tensor held_entries(const std::string& name);
/// The values of --hold.
std::vector<std::string> held_names();

/// The largest error of an entry of [M|W], [3, 6], against the block with this friction limit.
double row_error(const torch::Tensor& rows, double limit);

/// The rows, each multiplied by the positive factor that brings it nearest to the true row of a block with this
/// friction limit. Where `motion_only`, the mean of W_1 and W_2 is removed too, since it has no effect on motion.
torch::Tensor canonical_rows(const torch::Tensor& rows, double limit, bool motion_only);

/// Fits v_next = dynamics . (v, u, 1, lambda_plus, lambda_minus, gamma) by least squares, starting at the
/// dynamics of the model: what the samples do not determine keeps its value.
void fit_dynamics(nn::TraditionalModel& model, const Samples& samples);

/// Which entries of [M|W] that are not held samples with known forces determine. Only those samples contribute to a row
/// in which its unknown is > 0, so that its w is 0.
IdentifiabilityReport rows_identifiability(const nn::TraditionalModel& model, const Samples& samples);

/// Which parameters of the model v_next of at most 256 samples determines.
IdentifiabilityReport motion_identifiability(nn::TraditionalModel& model, const Samples& samples);

/// How gamma = 0 and the active set (see TraditionalModelImpl::sticks) tell held-out steps that end at rest from those
/// that slide: sticking_found_by_gamma, sticking_found_by_active_set, sliding_mistaken_by_gamma and
/// sliding_mistaken_by_active_set, each a fraction.
nlohmann::json sticking_metrics(nn::TraditionalModel& model, const Samples& heldout);

constexpr const char* kExactRestHelp =
    "Let the model that was learned predict exactly 0 where its active set is that of a block that sticks";

/// The flags of a model with unknown friction.
struct FrictionModelFlags {
  std::string parameters = "mu";
  double initial_mu = 4;
  double start_noise = 0.1;
  std::int64_t hidden_units = 16;
  double nonlinearity = 0.1;
  bool exact_rest = false;

  void add_to(CommandLine& line);
  nn::TraditionalModel make(const RunFlags& run, const PhysicsFlags& block) const;
};

/// Metrics of a model whose friction was unknown: mu, and parameter_error of its canonical rows; null for networks.
nlohmann::json friction_metrics(nn::TraditionalModel& model, const PhysicsFlags& block);

}  // namespace lcp::training
