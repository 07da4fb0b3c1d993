#include "network/search.h"

#include <torch/optim/adam.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <mutex>
#include <utility>

#include "lcp/identification/least_squares.h"
#include "lcp/learning/bilevel_loss.h"
#include "run/one_thread.h"
#include "run/random.h"
#include "run/tasks.h"
#include "run/trainer.h"

namespace lcp::training {
namespace {

using identification::Linearization;
using nn::Dependence;
using nn::LcpNetwork;
using nn::LcpNetworkOptions;
using torch::Tensor;

// Networks whose relative validation error is below this, and that rest where the samples rest, are exact.
constexpr double kExact = 1e-10, kExactRest = 0.99;
// Where affine networks have a smaller error than this, networks whose q is one are not tried.
constexpr double kAlmostAffine = 1e-3;
// A round improves on the earlier ones where its validation error is at most this multiple of theirs.
constexpr double kImproved = 0.9;
// Rounds without an improvement after which affine networks, and others, do not grow any more. The error of an affine
// network may stay large until it has all unknowns of the motion, and is then round-off.
constexpr std::int64_t kAffinePatience = 3, kNetworkPatience = 2;
// The largest number of unknowns that is tried for each velocity, beside one more.
constexpr std::int64_t kUnknownsPerVelocity = 4;
// The ratio a2 / a1 of the bilevel loss at first and at last, and a3 / a2, which the unknowns should not exceed.
constexpr double kSmallestRatio = 1e-2, kLargestRatio = 100, kViolation = 10;
constexpr std::int64_t kKept = 4;  // networks of a round
// The factors of the penalties as the Levenberg-Marquardt method goes on; in the end they are 0.
constexpr double kPenalties[] = {1, 0.1, 0.01};
// The penalty on couplings counts as much as this many residuals: many samples need it less.
constexpr double kCouplingResiduals = 50;
constexpr std::int64_t kFinished = 8;                             // starts that are finished
constexpr std::int64_t kTrainedAtOnce = 16, kFinishedAtOnce = 4;  // the sizes of tasks
constexpr std::int64_t kRandomStates = 1000;
// The share of random states with an active set that no sample has from which on a network is avoided.
constexpr double kRarelyUnseen = 0.005;

Tensor scale_of(const Tensor& x) {
  const Tensor scale = x.std(0, /*unbiased=*/false);
  return at::where(scale > 0, scale, 1);
}

// The errors of the predictions, relative to the units of the outputs: [..., n, d] for theta [..., n or 1, size()].
Tensor errors(const LcpNetwork& network, const Tensor& theta, const Motion& motion, double kappa = 0) {
  SolveOptions options;
  options.kappa = kappa;
  return (network->step(motion.x, theta, options).y - motion.v_next) / network->output_unit;
}

Tensor root_mean_squares(const LcpNetwork& network, const Tensor& theta, const Motion& motion) {
  return errors(network, theta.unsqueeze(1), motion).square().mean({1, 2}).sqrt().nan_to_num(INFINITY, INFINITY);
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

// A number for each active set: [..., count].
Tensor active_sets(const LcpNetwork& network, const Tensor& theta, const Tensor& x) {
  const Tensor active = network->step(x, theta).z > 0;
  return at::bitwise_left_shift(active.to(torch::kLong), at::arange(active.size(-1), torch::kLong)).sum(-1);
}

// Whether a network predicts the motion up to rounding.
bool exact(const Candidate& c) { return c.validation_error < kExact && c.rest > kExactRest; }

// A percent of the resting samples that do not rest counts as much as an error twice as large.
double score(const Candidate& c) { return (exact(c) ? kExact : c.validation_error) * (1 + 100 * (1 - c.rest)); }

bool simpler(const Candidate& a, const Candidate& b) {
  const auto key = [](const Candidate& c) {
    return std::tuple(c.unseen > kRarelyUnseen, c.options.q() == Dependence::kNetwork, c.options.unknowns(), c.unseen,
                      c.validation_error);
  };
  return key(a) < key(b);
}

}  // namespace

Search::Search(Motion training, Motion validation, const SearchOptions& options)
    : training_(std::move(training)),
      validation_(std::move(validation)),
      options_(options),
      resting_((training_.v_next.abs() <= options.rest_below).all(1).nonzero().squeeze(-1)),
      input_unit_(scale_of(training_.x)),
      output_unit_(scale_of(training_.v_next)) {}

LcpNetwork Search::network(const LcpNetworkOptions& options) const {
  const torch::NoGradGuard no_grad;
  LcpNetwork made(options);
  made->input_unit.copy_(input_unit_);
  made->output_unit.copy_(output_unit_);
  return made;
}

std::optional<Search::Plan> Search::next() const {
  const std::int64_t wanted = options_.unknowns;
  double lowest = INFINITY;  // of the errors so far
  for (const Dependence q : {Dependence::kAffine, Dependence::kNetwork}) {
    if (!(q == Dependence::kAffine ? options_.affine : options_.network)) continue;
    if (lowest < kAlmostAffine) return std::nullopt;
    std::vector<std::int64_t> rounds;  // those with this q
    lowest = INFINITY;
    std::int64_t stalled = 0;  // rounds since the last improvement
    for (std::size_t k = 0; k < rounds_.size(); ++k) {
      const Candidate& best = rounds_[k].front();
      if (best.options.q() != q) continue;
      rounds.push_back(static_cast<std::int64_t>(k));
      stalled = best.validation_error <= kImproved * lowest ? 0 : stalled + 1;
      lowest = std::min(lowest, best.validation_error);
    }
    const auto plan = [&](std::int64_t unknowns, std::int64_t parents) {
      return Plan{LcpNetworkOptions(options_.parts).q(q).unknowns(unknowns), parents};
    };
    if (rounds.empty()) {
      // A network begins as the best affine ones of the same size, since it contains them.
      const bool after_affine = q == Dependence::kNetwork && options_.affine && options_.loss != SearchLoss::kOneSided;
      return plan(first_unknowns(), after_affine ? 0 : -1);
    }
    const Candidate& latest = rounds_[static_cast<std::size_t>(rounds.back())].front();
    const std::int64_t unknowns = latest.options.unknowns();
    if (exact(latest) && (wanted == 0 || unknowns == wanted)) {
      // Fewer unknowns, where random states have active sets that no sample has.
      if (latest.unseen > 0 && wanted == 0 && unknowns > 1) return plan(unknowns - 1, rounds.back());
      return std::nullopt;
    }
    if (rounds.size() > 1 && unknowns < this->unknowns(rounds[rounds.size() - 2])) return std::nullopt;
    const std::int64_t patience = q == Dependence::kAffine ? kAffinePatience : kNetworkPatience;
    if (unknowns < last_unknowns() && (stalled < patience || wanted > 0)) return plan(unknowns + 1, rounds.back());
  }
  return std::nullopt;
}

std::int64_t Search::most_rounds() const {
  const std::int64_t kinds = (options_.affine ? 1 : 0) + (options_.network ? 1 : 0);
  return kinds * (last_unknowns() - first_unknowns() + 1) + last_unknowns() - 1;  // until one unknown is left
}

std::int64_t Search::first_unknowns() const {
  const std::int64_t d = training_.v_next.size(1);
  if (options_.loss == SearchLoss::kOneSided) return 2 * d;  // those of y = z+ - z-
  const std::int64_t first = d + 1;
  return options_.unknowns > 0 ? std::min(options_.unknowns, first) : first;
}

std::int64_t Search::last_unknowns() const {
  return options_.unknowns > 0 ? options_.unknowns : kUnknownsPerVelocity * training_.v_next.size(1) + 1;
}

Tensor Search::starts(const LcpNetwork& network, const Plan& plan) const {
  const at::Generator numbers = generator(options_.seed, Stream::kStarts, static_cast<std::int64_t>(rounds_.size()));
  Tensor theta = network->random(options_.starts, numbers);
  if (plan.parents < 0) return theta;
  const Round& parents = rounds_[static_cast<std::size_t>(plan.parents)];
  if (plan.options.unknowns() < unknowns(plan.parents)) {
    std::vector<Tensor> reduced;
    reduced.reserve(parents.size() * static_cast<std::size_t>(unknowns(plan.parents)));
    for (const Candidate& parent : parents) {
      const Tensor all = at::arange(parent.options.unknowns());
      for (std::int64_t k = 0; k < all.numel(); ++k) {
        reduced.push_back(this->network(parent.options)->restricted(parent.theta, all.index({all != k})));
      }
    }
    return at::stack(reduced);
  }
  const std::int64_t grown = options_.starts * 3 / 4;
  for (std::int64_t k = 0; k < grown; ++k) {
    const Candidate& parent = parents[static_cast<std::size_t>(k) % parents.size()];
    const LcpNetwork old = this->network(parent.options);
    // Unknowns that no sample has active are not kept, others get their places.
    const Tensor alive = (old->step(training_.x, parent.theta).z > 0).any(0).nonzero().squeeze(-1);
    if (alive.numel() == 0) continue;
    LcpNetworkOptions pruned = parent.options;
    const LcpNetwork kept = this->network(pruned.unknowns(alive.numel()));
    theta[k].copy_(network->grown(*kept, old->restricted(parent.theta, alive), numbers));
  }
  return theta;
}

// The loss of each network, [starts], when the fraction `done` of the iterations is completed.
Tensor Search::loss_of(const LcpNetwork& network, const Tensor& theta, const Motion& batch, double done, double kappa,
                       SearchLoss kind) const {
  const Tensor y = batch.v_next / output_unit_;
  if (kind == SearchLoss::kPrediction) {
    SolveOptions solve_options;
    solve_options.kappa = kappa;
    const auto step = network->step(batch.x, theta.unsqueeze(1), solve_options);
    Tensor loss = (step.y / output_unit_ - y).square().mean({1, 2});
    if (resting_.numel() == 0 || options_.rest_penalty == 0) return loss;
    const Tensor resting = rests(batch.v_next).to(torch::kDouble);
    return loss + options_.rest_penalty * options_.rest_penalty * (step.activity * resting).square().mean(1);
  }
  const auto parts = network->parts(batch.x, theta.unsqueeze(1));
  if (kind == SearchLoss::kBilevel) {
    learning::BilevelWeights weights;
    weights.complementarity = kLargestRatio * std::pow(kSmallestRatio / kLargestRatio, std::max(0.0, 1 - 2 * done));
    weights.violation = kViolation * weights.complementarity;
    const Tensor beta = parts.f.defined() ? y - parts.f : y;
    return learning::bilevel_loss(parts.M, parts.q, parts.G, beta, weights).value.mean(1);
  }
  const Tensor moving = at::where(batch.v_next.abs() <= options_.rest_below, 0, y);
  const Tensor z = at::cat({moving.relu(), (-moving).relu()}, -1);
  const Tensor w = ((parts.M * z.unsqueeze(-2)).sum(-1) + parts.q) / at::diagonal(parts.M, 0, -2, -1);
  return at::where(z > 0, w, (-w).relu()).square().mean({1, 2});
}

Tensor Search::trained(const LcpNetwork& network, Tensor theta, std::int64_t iterations, double from, double to,
                       bool first_round, std::int64_t stream, const std::function<bool()>& stopped) const {
  const bool one_sided = options_.loss == SearchLoss::kOneSided;
  if (one_sided && first_round) {
    // y = z+ - z-; this loss has no derivative in G.
    const std::int64_t d = network->options.outputs();
    network->entry("G_bias", theta).copy_(at::cat({at::eye(d), -at::eye(d)}, 1));
  }
  const SearchLoss kind = one_sided && !first_round ? SearchLoss::kPrediction : options_.loss;
  theta = theta.clone().requires_grad_();
  torch::optim::Adam adam({theta}, torch::optim::AdamOptions(options_.learning_rate));
  at::Generator batches = generator(options_.seed, Stream::kMinibatches, stream);
  const std::int64_t batch_size = std::min(options_.batch_size, training_.count());
  for (std::int64_t k = 0; k < iterations && !(stopped && stopped()); ++k) {
    const double done = from + (to - from) * static_cast<double>(k) / static_cast<double>(iterations);
    const double kappa = first_round ? options_.kappa * std::pow(std::max(0.0, 1 - 2 * done), 2) : 0;
    for (auto& group : adam.param_groups()) group.options().set_lr(cosine_step_size(options_.learning_rate, done));
    adam.zero_grad();
    const Motion batch = training_.at(torch::randint(training_.count(), {batch_size}, batches, torch::kLong));
    loss_of(network, theta, batch, done, kappa, kind).nan_to_num().sum().backward();
    adam.step();
  }
  return theta.detach();
}

// The Levenberg-Marquardt method with both penalties, multiplied by `factor`. Where q is a network, which only
// approximates the motion, the penalty on forces at rest stays: what rests must rest exactly all the same.
Tensor Search::fitted(const LcpNetwork& network, const Tensor& theta, std::int64_t iterations, double factor,
                      const std::function<bool()>& stopped) const {
  if (stopped && stopped()) return theta;
  const double residuals = static_cast<double>(training_.v_next.numel());
  const double coupling = factor * options_.coupling_penalty * std::sqrt(std::min(residuals, kCouplingResiduals));
  const double rest = options_.rest_penalty * (network->options.q() == Dependence::kNetwork ? 1 : factor);
  const auto linearized = [&](const Tensor& at_theta, const Tensor&) {
    const auto [values, jacobian] = network->linearize(training_.x, at_theta);
    const std::int64_t d = training_.v_next.size(1);
    Linearization here{(values.slice(2, 0, d) - training_.v_next / network->output_unit).flatten(1),
                       jacobian.slice(2, 0, d).flatten(1, 2)};
    if (resting_.numel() > 0 && rest > 0) {
      const auto forces = [&](const Tensor& of) {
        return rest * of.index_select(1, resting_).slice(2, d).flatten(1, 2);
      };
      here = {at::cat({here.residuals, forces(values)}, 1), at::cat({here.jacobian, forces(jacobian)}, 1)};
    }
    if (coupling == 0 || network->options.unknowns() == 1) return here;
    const Linearization coupled =
        identification::linearize([&](const Tensor& rows) { return coupling * couplings(network, rows); }, at_theta);
    return Linearization{at::cat({here.residuals, coupled.residuals}, 1),
                         at::cat({here.jacobian, coupled.jacobian}, 1)};
  };
  identification::LeastSquaresOptions options;
  options.max_iterations = iterations;
  return identification::least_squares(linearized, theta, options).theta;
}

Round Search::ranked(const LcpNetwork& network, const Tensor& theta) const {
  const torch::NoGradGuard no_grad;
  const Tensor training_error = root_mean_squares(network, theta, training_);
  const Tensor validation_error = root_mean_squares(network, theta, validation_);
  at::Generator numbers = generator(options_.seed, Stream::kRandomStates);
  std::vector<Tensor> columns;
  for (const Tensor& column : training_.x.unbind(1)) {
    columns.push_back(
        column.index_select(0, torch::randint(training_.count(), {kRandomStates}, numbers, torch::kLong)));
  }
  const Tensor states = at::stack(columns, 1);
  Round all;
  for (std::int64_t k = 0; k < theta.size(0); ++k) {
    const Tensor seen = active_sets(network, theta[k], training_.x);
    const Tensor unseen = ~at::isin(active_sets(network, theta[k], states), seen);
    const Tensor rests = (network->step(training_.x.index_select(0, resting_), theta[k]).y == 0).all(1);
    all.push_back({network->options, theta[k].clone(), training_error[k].item<double>(),
                   validation_error[k].item<double>(), unseen.to(torch::kDouble).mean().item<double>(),
                   resting_.numel() > 0 ? rests.to(torch::kDouble).mean().item<double>() : 1});
  }
  const auto by = [](const Candidate& c) { return std::pair(score(c), c.unseen); };
  std::stable_sort(all.begin(), all.end(), [&](const Candidate& a, const Candidate& b) { return by(a) < by(b); });
  if (all.size() > kKept) all.erase(all.begin() + kKept, all.end());
  return all;
}

void Search::advance(const std::function<bool()>& stopped, const std::function<void(double)>& progress) {
  const auto plan = next();
  TORCH_INTERNAL_ASSERT(plan);
  const OneThread one_thread;
  const LcpNetwork network = this->network(plan->options);
  const auto round = static_cast<std::int64_t>(rounds_.size());
  Tensor theta;
  {
    const torch::NoGradGuard no_grad;
    theta = starts(network, *plan);
  }
  const auto in_tasks = [&](const Tensor& all, std::int64_t size, const std::function<Tensor(const Tensor&)>& work) {
    std::vector<Tensor> parts = all.split(size);
    run_tasks(static_cast<std::int64_t>(parts.size()), options_.threads, [&](std::int64_t k) {
      auto& part = parts[static_cast<std::size_t>(k)];
      part = work(part);
    });
    return at::cat(parts);
  };
  const auto best_of = [&](const Tensor& all, std::int64_t count) {
    const torch::NoGradGuard no_grad;
    const Tensor order = root_mean_squares(network, all, training_).argsort(/*stable=*/true, 0, false);
    return all.index_select(0, order.slice(0, 0, count));
  };
  const bool reduces = plan->parents >= 0 && plan->options.unknowns() < unknowns(plan->parents);
  for (const bool second : {false, true}) {
    if (reduces) break;
    theta = in_tasks(theta, kTrainedAtOnce, [&](const Tensor& part) {
      return trained(network, part, options_.iterations / 2, second ? 0.5 : 0, second ? 1 : 0.5, plan->parents < 0,
                     2 * round + second, stopped);
    });
    if (!second) theta = best_of(theta, (theta.size(0) + 1) / 2);
    if (progress) progress(second ? 0.4 : 0.2);
  }
  if (options_.finishing_iterations > 0) {
    const auto fit = [&](std::int64_t iterations, double factor) {
      theta = in_tasks(theta, kFinishedAtOnce, [&](const Tensor& part) {
        const torch::NoGradGuard no_grad;
        return fitted(network, part, iterations, factor, stopped);
      });
    };
    fit(options_.finishing_iterations / 4, kPenalties[0]);
    theta = best_of(theta, kFinished);
    for (const double factor : kPenalties) fit(options_.finishing_iterations / 4, factor);
    fit(options_.finishing_iterations, 0);
  }
  if (stopped && stopped()) return;
  rounds_.push_back(ranked(network, theta));
}

Candidate Search::best() const {
  const Candidate* lowest = &rounds_.back().front();
  const auto allowed = [&](const Round& round) {
    return options_.unknowns == 0 || round.front().options.unknowns() == options_.unknowns;
  };
  for (const Round& round : rounds_) {
    if (!allowed(round)) continue;
    if (score(round.front()) < score(*lowest)) lowest = &round.front();
  }
  const Candidate* chosen = lowest;
  // Errors that differ by less than the standard error of a root of the mean square of as many normal numbers are taken
  // for equal: the simpler network is chosen.
  const double equal = 1 + 1 / std::sqrt(2 * static_cast<double>(validation_.v_next.numel()));
  const double limit = equal * score(*lowest);
  for (const Round& round : rounds_) {
    if (!allowed(round)) continue;
    for (const Candidate& c : round) {
      if (score(c) <= limit && simpler(c, *chosen)) chosen = &c;
    }
  }
  return *chosen;
}

Candidate Search::refitted(const Candidate& candidate) const {
  const OneThread one_thread;
  const torch::NoGradGuard no_grad;
  Search all(*this);
  all.training_ = {at::cat({training_.x, validation_.x}), at::cat({training_.v_next, validation_.v_next})};
  all.resting_ = rests(all.training_.v_next).nonzero().squeeze(-1);
  const LcpNetwork network = this->network(candidate.options);
  Candidate fit = candidate;
  if (options_.finishing_iterations > 0) {
    fit.theta = all.fitted(network, candidate.theta.unsqueeze(0), 2 * options_.finishing_iterations, 0, {})[0];
  }
  return fit;
}

}  // namespace lcp::training
