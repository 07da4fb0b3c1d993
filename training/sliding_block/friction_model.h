// The model of a sliding block whose LCP in the traditional formulation is learned: flags, data in its units, metrics.
#pragma once

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "lcp/nn/traditional_model.h"
#include "run/command_line.h"
#include "run/identifiability.h"
#include "sliding_block/samples.h"
#include "sliding_block/starts.h"

namespace lcp::training {

/// (v, u, 1) in the model's units, [n, 3].
torch::Tensor states(const nn::TraditionalModel& model, const Samples& samples);

/// Known solutions in the model's units: (lambda_plus, lambda_minus, gamma), [n, 3].
torch::Tensor solutions(const nn::TraditionalModel& model, const Samples& samples);

/// The learned LCP of the model; `penalty` is the weight of its nonlinear parameters. A negative friction limit f_3,
/// for which there is no LCP, counts as 0.
LearnedLcp learned_lcp(const nn::TraditionalModel& model, double penalty);

/// A mask of the entries of [M|W] that --hold fixes at their true values, [3, 6], bool, by the flag's value. none: no
/// entry. first: M11. diagonal: M11, M22, M31. one_per_row: M13, M23, M31. cone: M13, M23, M31, M33. two_two_one: the
/// first 2, 2 and 1 nonzero entries of M's rows. three_two_one: the same with 3, 2 and 1. upper_triangle: that of M.
/// matrix: M. vector: W.
torch::Tensor held_entries(const std::string& name);
/// The same mask with the entries that a monotone M determines: M33, and of M13 and M31, and M23 and M32, the partner
/// of one that is held.
torch::Tensor with_monotone(const torch::Tensor& held);
/// The values of --hold.
std::vector<std::string> held_names();

/// Adds the flag --matrix of programs that learn [M|W] from known forces: kMonotone, "free" or, where that is possible,
/// kAffine.
void add_matrix_flag(CommandLine& line, std::string& matrix, bool may_be_affine);
constexpr const char *kMonotone = "monotone", *kAffine = "affine";

/// The largest error of an entry of [M|W], [3, 6], against the block with this friction limit.
double row_error(const torch::Tensor& rows, double limit);

/// The rows, each divided by the size of the entries that are the same for every block: M13, M23 and (M31 + M32) / -2,
/// unless these have the wrong sign. Where `motion_only`, the mean of W_1 and W_2 is removed too, since it has no
/// effect on motion.
torch::Tensor canonical_rows(const torch::Tensor& rows, bool motion_only);

/// Fits v_next = dynamics . (v, u, 1, lambda_plus, lambda_minus, gamma) by least squares, starting at the
/// dynamics of the model: what the samples do not determine keeps its value.
void fit_dynamics(nn::TraditionalModel& model, const Samples& samples);

/// Which entries of [M|W], and slopes of M, that are not held samples with known forces determine. Only those samples
/// contribute to a row in which its unknown is > 0, so that its w is 0.
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
  StartFlags start{.start = "block"};
  std::int64_t hidden_units = 16;
  double nonlinearity = 0.1;
  bool exact_rest = false;

  /// That weight times a factor that falls from 100 to 1 in the first half of the training.
  double nonlinearity_at(double done) const { return nonlinearity * std::pow(100, std::max(0.0, 1 - 2 * done)); }

  void add_to(CommandLine& line);

  /// To be called once the command line is parsed. Throws a UsageError where flags exclude each other.
  void validate(const CommandLine& line);

  /// The model that is to learn the samples, and its starts, [starts, size()]. Throws a UsageError where --start names
  /// a file that is none of such a model.
  std::pair<nn::TraditionalModel, torch::Tensor> make(const RunFlags& run, const PhysicsFlags& block,
                                                      const Samples& samples) const;
};

/// Metrics of a model whose friction was unknown: mu, and parameter_error of its canonical rows; null for networks.
nlohmann::json friction_metrics(nn::TraditionalModel& model, const PhysicsFlags& block);

}  // namespace lcp::training
