// fit_network as an operator, for Python.
#include "ops/registration.h"

#include <torch/library.h>
#include <torch/types.h>

#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "lcp/learning/fit_network.h"
#include "ops/call_python.h"

namespace lcp::learning {
namespace {

using at::Tensor;
using Text = std::string;

Tensor row(const std::vector<double>& numbers) { return torch::tensor(numbers, torch::kDouble); }

// Returns theta, the units, the numbers of the result, and those of each round.
std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor> fit_network_of(
    const Tensor& inputs, const Tensor& targets, const std::optional<Tensor>& validation_inputs,
    const std::optional<Tensor>& validation_targets, double validation, const std::optional<double>& noise,
    const std::optional<double>& budget_seconds, const Text& f, const Text& G, const Text& q, std::int64_t hidden_units,
    const Text& activation, double definiteness, const Text& loss, std::int64_t unknowns, std::int64_t starts,
    std::int64_t seed, std::int64_t threads, std::int64_t iterations, double learning_rate, std::int64_t batch_size,
    double kappa, std::int64_t finishing_iterations, double coupling_penalty, double rest_penalty, double rest_below,
    const std::optional<std::int64_t>& first_velocity, const std::optional<ops::PythonFunction>& progress) {
  FitNetworkOptions options;
  options.parts.f(nn::dependence_named(f, "f"))
      .G(nn::dependence_named(G, "G"))
      .hidden(hidden_units)
      .activation(nn::activation_named(activation))
      .definiteness(definiteness);
  TORCH_CHECK(q == "auto" || q == "affine" || q == "network", "q must be auto, affine or network; got ", q);
  options.affine = q != "network";
  options.network = q != "affine";
  options.loss = network_loss_named(loss);
  options.unknowns = unknowns;
  options.starts = starts;
  options.seed = seed;
  options.threads = threads;
  options.iterations = iterations;
  options.learning_rate = learning_rate;
  options.batch_size = batch_size;
  options.kappa = kappa;
  options.finishing_iterations = finishing_iterations;
  options.coupling_penalty = coupling_penalty;
  options.rest_penalty = rest_penalty;
  options.rest_below = rest_below;
  options.first_velocity = first_velocity;
  options.validation = validation;
  if (validation_inputs) options.validation_samples = {*validation_inputs, validation_targets.value()};
  options.noise = noise;
  options.budget_seconds = budget_seconds;
  if (progress) {
    options.progress = [&](const FitProgress& now) {
      const double unknowns_so_far = static_cast<double>(now.unknowns);
      ops::call_python(*progress, {row({now.done, unknowns_so_far, now.validation_rmse})}, now.rounds);
    };
  }
  const FitResult found = fit_network(inputs, targets, options);
  std::vector<Tensor> rounds;
  for (const FitRound& round : found.rounds) {
    rounds.push_back(row({static_cast<double>(round.unknowns), round.q == nn::Dependence::kNetwork ? 1. : 0.,
                          round.training_rmse, round.validation_rmse, round.rest, static_cast<double>(round.starts)}));
  }
  const bool q_is_network = found.network->options.q() == nn::Dependence::kNetwork;
  const Tensor numbers =
      row({static_cast<double>(found.unknowns), q_is_network ? 1. : 0., found.training_rmse, found.validation_rmse,
           found.rest, found.exact ? 1. : 0., found.disagreement.value_or(NAN), found.odd ? 1. : 0.,
           found.inertial ? 1. : 0., found.out_of_time ? 1. : 0.});
  return {found.network->theta().detach(), found.network->input_unit, found.network->output_unit, numbers,
          at::stack(rounds)};
}

LCP_LIBRARY_FRAGMENT(library) {
  library.def(
      "_fit_network(Tensor inputs, Tensor targets, Tensor? validation_inputs, Tensor? validation_targets, *, float "
      "validation, float? noise, float? budget_seconds, str f, str G, str q, int hidden_units, str activation, float "
      "definiteness, str loss, int unknowns, int starts, int seed, int threads, int iterations, float learning_rate, "
      "int batch_size, float kappa, int finishing_iterations, float coupling_penalty, float rest_penalty, float "
      "rest_below, int? first_velocity, int? progress) -> (Tensor theta, Tensor input_unit, Tensor output_unit, Tensor "
      "numbers, Tensor rounds)",
      TORCH_FN(fit_network_of));
}

}  // namespace
}  // namespace lcp::learning
