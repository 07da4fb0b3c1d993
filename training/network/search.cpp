#include "network/search.h"

#include <torch/optim/adam.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>
#include <vector>

#include "lcp/identification/least_squares.h"
#include "run/one_thread.h"
#include "run/random.h"
#include "run/trainer.h"

namespace lcp::training {
namespace {

using identification::Linearization;
using nn::LcpNetwork;
using torch::Tensor;

// The weights of the penalty on M, relative to the root of the number of residuals; the last networks have none.
constexpr double kPenalties[] = {5e-3, 5e-4, 5e-5, 0};
// Relative validation errors below this are the rounding of exact networks.
constexpr double kExact = 1e-12;
constexpr std::int64_t kFinishedAtOnce = 16;  // bounds the memory of the Jacobians
constexpr std::int64_t kRandomStates = 1000;

// The errors of the predictions, relative to the units of the outputs: [..., n, d] for theta [..., n or 1, size()].
Tensor errors(const LcpNetwork& network, const Tensor& theta, const Motion& motion, double kappa = 0) {
  SolveOptions options;
  options.kappa = kappa;
  return (network->step(motion.x, theta, options).y - motion.v_next) / network->output_unit;
}

Tensor root_mean_squares(const LcpNetwork& network, const Tensor& theta, const Motion& motion) {
  return errors(network, theta.unsqueeze(1), motion).square().mean({1, 2}).sqrt();
}

// The entries of M beside its diagonal, relative to it: [..., n (n - 1)].
Tensor couplings(const LcpNetwork& network, const Tensor& theta) {
  const Tensor M = network->matrix(theta);
  const Tensor scale = at::diagonal(M, 0, -2, -1).sqrt();
  const Tensor relative = M / (scale.unsqueeze(-1) * scale.unsqueeze(-2));
  const std::int64_t n = M.size(-1);
  const Tensor beside = (at::ones({n, n}) - at::eye(n)).flatten().nonzero().squeeze(-1);
  return relative.flatten(-2).index_select(-1, beside);
}

Tensor trained(const LcpNetwork& network, const Motion& training, const SearchOptions& options,
               const std::function<void(double)>& progress) {
  const Tensor theta = network->random(options.starts, generator(options.seed, Stream::kStarts)).requires_grad_();
  torch::optim::Adam adam({theta}, torch::optim::AdamOptions(options.learning_rate));
  at::Generator batches = generator(options.seed, Stream::kMinibatches);
  const std::int64_t batch_size = std::min(options.batch_size, training.count());
  for (std::int64_t k = 0; k < options.iterations; ++k) {
    const double done = static_cast<double>(k) / static_cast<double>(options.iterations);
    const double kappa = options.kappa * std::pow(std::max(0.0, 1 - 2 * done), 2);
    for (auto& group : adam.param_groups()) group.options().set_lr(cosine_step_size(options.learning_rate, done));
    adam.zero_grad();
    const Motion batch = training.at(torch::randint(training.count(), {batch_size}, batches, torch::kLong));
    errors(network, theta.unsqueeze(1), batch, kappa).square().mean({1, 2}).sum().backward();
    adam.step();
    if (progress) progress(done);
  }
  return theta.detach();
}

// The Levenberg-Marquardt method with a falling penalty on the couplings.
Tensor finished(const LcpNetwork& network, Tensor theta, const Motion& training, std::int64_t iterations) {
  const double residuals = static_cast<double>(training.v_next.numel());
  for (const double penalty : kPenalties) {
    const double weight = penalty * std::sqrt(residuals);
    const auto linearized = [&](const Tensor& at_theta) {
      Linearization here = identification::linearize_samples(
          [&](const Tensor& rows) { return errors(network, rows, training); }, at_theta, training.count());
      if (weight == 0 || network->options.unknowns() == 1) return here;
      const Linearization coupled =
          identification::linearize([&](const Tensor& rows) { return weight * couplings(network, rows); }, at_theta);
      return Linearization{at::cat({here.residuals, coupled.residuals}, 1),
                           at::cat({here.jacobian, coupled.jacobian}, 1)};
    };
    identification::LeastSquaresOptions options;
    options.max_iterations = penalty > 0 ? iterations / 2 : iterations;
    theta = identification::least_squares(linearized, theta, options).theta;
  }
  return theta;
}

// A number for each active set: [..., count].
Tensor active_sets(const LcpNetwork& network, const Tensor& theta, const Tensor& x) {
  const Tensor active = network->step(x, theta).z > 0;
  return at::bitwise_left_shift(active.to(torch::kLong), at::arange(active.size(-1), torch::kLong)).sum(-1);
}

Tensor unseen_shares(const LcpNetwork& network, const Tensor& theta, const Motion& training, std::int64_t seed) {
  at::Generator numbers = generator(seed, Stream::kRandomStates);
  std::vector<Tensor> columns;
  for (const Tensor& column : training.x.unbind(1)) {
    columns.push_back(column.index_select(0, torch::randint(training.count(), {kRandomStates}, numbers, torch::kLong)));
  }
  const Tensor states = at::stack(columns, 1);
  std::vector<Tensor> shares;
  for (const Tensor& one : theta.unbind(0)) {
    const Tensor seen = active_sets(network, one, training.x);
    shares.push_back((~at::isin(active_sets(network, one, states), seen)).to(torch::kDouble).mean());
  }
  return at::stack(shares);
}

}  // namespace

SearchResult search(const LcpNetwork& network, const Motion& training, const Motion& validation,
                    const SearchOptions& options, const std::function<void(double)>& progress) {
  const OneThread one_thread;
  Tensor theta = trained(network, training, options, progress);
  const torch::NoGradGuard no_grad;
  const Tensor order = root_mean_squares(network, theta, training).nan_to_num(INFINITY, INFINITY).argsort();
  theta = theta.index_select(0, order.slice(0, 0, options.finished));
  std::vector<Tensor> parts;
  for (const Tensor& part : theta.split(kFinishedAtOnce)) {
    parts.push_back(finished(network, part, training, options.finishing_iterations));
  }
  theta = at::cat(parts);
  const Tensor validation_error = root_mean_squares(network, theta, validation);
  const Tensor unseen = unseen_shares(network, theta, training, options.seed);
  // Both sorts are stable: the second is the first criterion.
  Tensor ranked = unseen.argsort(/*stable=*/true, 0, false);
  const Tensor criterion = at::where(validation_error < kExact, 0, validation_error).nan_to_num(INFINITY, INFINITY);
  ranked = ranked.index_select(0, criterion.index_select(0, ranked).argsort(/*stable=*/true, 0, false));
  const auto in_order = [&](const Tensor& x) { return x.index_select(0, ranked); };
  return {in_order(theta), in_order(root_mean_squares(network, theta, training)), in_order(validation_error),
          in_order(unseen)};
}

}  // namespace lcp::training
