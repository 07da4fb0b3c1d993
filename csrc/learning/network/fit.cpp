#include "learning/network/fit.h"

#include <torch/optim/adam.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>
#include <utility>

#include "lcp/identification/least_squares.h"
#include "lcp/learning/bilevel_loss.h"
#include "learning/network/random.h"

namespace lcp::learning::fitting {
namespace {

using identification::Linearization;
using nn::Dependence;
using nn::LcpNetwork;
using torch::Tensor;

// The ratio a2 / a1 of the bilevel loss at first and at last, and a3 / a2, which the unknowns should not exceed.
constexpr double kSmallestRatio = 1e-2, kLargestRatio = 100, kViolation = 10;
// The penalty on couplings counts as much as this many residuals: many samples need it less.
constexpr double kCouplingResiduals = 50;
// The weight of the inertia that unknowns are held to.
constexpr double kInertial = 1e3;
// The weight of the hidden units' weights: without it some units become steps between two samples.
constexpr double kSteepness = 1e-4;
constexpr std::int64_t kPivotsPerUnknown = 4;

// See `errors`.
SolveOptions few_pivots(const LcpNetwork& network) {
  SolveOptions options;
  options.max_pivots = kPivotsPerUnknown * network->options.unknowns();
  return options;
}

// The loss of each network, [starts], when the fraction `done` of the iterations is completed.
Tensor loss_of(const LcpNetwork& network, const Tensor& theta, const Samples& batch, double done,
               const NetworkSearchOptions& options) {
  const Tensor y = batch.y / network->output_unit;
  if (options.loss == NetworkLoss::kPrediction) {
    SolveOptions solve_options;
    solve_options.kappa = options.kappa * std::pow(std::max(0.0, 1 - 2 * done), 2);
    const Tensor prediction = network->step(batch.x, theta.unsqueeze(1), solve_options).y;
    return (prediction / network->output_unit - y).square().mean({1, 2});
  }
  const auto parts = network->parts(batch.x, theta.unsqueeze(1));
  if (options.loss == NetworkLoss::kBilevel) {
    BilevelWeights weights;
    weights.complementarity = kLargestRatio * std::pow(kSmallestRatio / kLargestRatio, std::max(0.0, 1 - 2 * done));
    weights.violation = kViolation * weights.complementarity;
    const Tensor beta = parts.f.defined() ? y - parts.f : y;
    return bilevel_loss(parts.M, parts.q, parts.G, beta, weights).value.mean(1);
  }
  const Tensor moving = at::where(batch.y.abs() <= options.rest_below, 0, y);
  const Tensor z = at::cat({moving.relu(), (-moving).relu()}, -1);
  const Tensor w = ((parts.M * z.unsqueeze(-2)).sum(-1) + parts.q) / at::diagonal(parts.M, 0, -2, -1);
  return at::where(z > 0, w, (-w).relu()).square().mean({1, 2});
}

}  // namespace

Tensor resting_rows(const Samples& samples, double rest_below) {
  return (samples.y.abs() <= rest_below).all(-1).nonzero().squeeze(-1);
}

Tensor errors(const LcpNetwork& network, const Tensor& theta, const Samples& samples) {
  return (network->step(samples.x, theta, few_pivots(network)).y - samples.y) / network->output_unit;
}

Tensor root_mean_squares(const LcpNetwork& network, const Tensor& theta, const Samples& samples) {
  return errors(network, theta.unsqueeze(1), samples).square().mean({1, 2}).sqrt().nan_to_num(INFINITY, INFINITY);
}

Tensor couplings(const LcpNetwork& network, const Tensor& theta) {
  const Tensor M = network->matrix(theta);
  const Tensor scale = at::diagonal(M, 0, -2, -1).sqrt();
  const Tensor relative = M / (scale.unsqueeze(-1) * scale.unsqueeze(-2));
  const std::int64_t n = M.size(-1);
  const Tensor beside = (at::ones({n, n}) - at::eye(n)).flatten().nonzero().squeeze(-1);
  return relative.flatten(-2).index_select(-1, beside);
}

Tensor train(const LcpNetwork& network, const Samples& samples, Tensor theta, std::int64_t stream,
             const NetworkSearchOptions& options, const std::function<bool()>& stopped) {
  if (options.loss == NetworkLoss::kOneSided) {
    // y = z+ - z-; this loss has no derivative in G.
    const std::int64_t d = network->options.outputs();
    network->entry("G_bias", theta).copy_(at::cat({at::eye(d), -at::eye(d)}, 1));
  }
  theta = theta.clone().requires_grad_();
  torch::optim::Adam adam({theta}, torch::optim::AdamOptions(options.learning_rate));
  at::Generator batches = generator(options.seed, Stream::kMinibatches, stream);
  const std::int64_t batch_size = std::min(options.batch_size, samples.count());
  for (std::int64_t k = 0; k < options.iterations && !(stopped && stopped()); ++k) {
    const double done = static_cast<double>(k) / static_cast<double>(options.iterations);
    for (auto& group : adam.param_groups())
      group.options().set_lr(options.learning_rate * 0.5 * (1 + std::cos(std::numbers::pi * done)));
    adam.zero_grad();
    const Samples batch = samples.at(torch::randint(samples.count(), {batch_size}, batches, torch::kLong));
    loss_of(network, theta, batch, done, options).nan_to_num().sum().backward();
    adam.step();
  }
  return theta.detach();
}

Tensor fit(const LcpNetwork& network, const Samples& samples, const Tensor& theta, std::int64_t iterations,
           const FitPenalties& penalties, const NetworkSearchOptions& options, const std::function<bool()>& stopped) {
  if (stopped && stopped()) return theta;
  const Tensor resting = resting_rows(samples, options.rest_below);
  const double residuals = static_cast<double>(samples.y.numel());
  const double coupling =
      penalties.coupling * options.coupling_penalty * std::sqrt(std::min(residuals, kCouplingResiduals));
  const auto linearized = [&](const Tensor& at_theta, const Tensor&) {
    const auto [values, jacobian] = network->linearize(samples.x, at_theta, few_pivots(network));
    const std::int64_t d = samples.y.size(1);
    Linearization here{(values.slice(2, 0, d) - samples.y / network->output_unit).flatten(1),
                       jacobian.slice(2, 0, d).flatten(1, 2)};
    if (resting.numel() > 0 && penalties.rest > 0) {
      const auto forces = [&](const Tensor& of) {
        return penalties.rest * of.index_select(1, resting).slice(2, d).flatten(1, 2);
      };
      here = {at::cat({here.residuals, forces(values)}, 1), at::cat({here.jacobian, forces(jacobian)}, 1)};
    }
    const auto add = [&](const std::function<Tensor(const Tensor&)>& penalty) {
      const Linearization added = identification::linearize(penalty, at_theta);
      here = {at::cat({here.residuals, added.residuals}, 1), at::cat({here.jacobian, added.jacobian}, 1)};
    };
    if (coupling > 0 && network->options.unknowns() > 1) {
      add([&](const Tensor& rows) { return coupling * couplings(network, rows); });
    }
    if (penalties.inertial) {
      add([&](const Tensor& rows) {
        const std::int64_t first = *options.first_velocity;
        const Tensor units = network->output_unit / network->input_unit.slice(0, first, first + d);
        const Tensor slopes = network->entry("q_weight", rows).slice(-1, first, first + d) * units;  // [..., n, d]
        const Tensor stopping = (slopes * network->entry("G_bias", rows).mT()).sum(-1);
        return kInertial * (1 + stopping / at::diagonal(network->matrix(rows), 0, -2, -1));
      });
    }
    for (const auto& [part, dependence] : {std::pair("f", network->options.f()), std::pair("G", network->options.G()),
                                           std::pair("q", network->options.q())}) {
      if (dependence != Dependence::kNetwork) continue;
      const std::string name = std::string(part) + "_hidden_weight";
      add([&](const Tensor& rows) { return kSteepness * network->entry(name, rows).flatten(-2); });
    }
    return here;
  };
  identification::LeastSquaresOptions of_method;
  of_method.max_iterations = iterations;
  of_method.least_curvature = penalties.least_curvature;
  return identification::least_squares(linearized, theta, of_method).theta;
}

}  // namespace lcp::learning::fitting
