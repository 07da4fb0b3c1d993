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
#include "run/process_group.h"
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

// Where affine networks have a smaller error than this, networks whose q is one are not tried.
constexpr double kAlmostAffine = 1e-3;
// A round improves on the earlier ones where its validation error is at most this multiple of theirs.
constexpr double kImproved = 0.9;
// Rounds without an improvement after which affine networks, and others, do not grow any more. The error of an affine
// network may stay large until it has all unknowns of the motion, and is then round-off.
constexpr std::int64_t kAffinePatience = 5, kNetworkPatience = 2;
// The largest number of unknowns that is tried for each velocity, beside one more.
constexpr std::int64_t kUnknownsPerVelocity = 4;
// The ratio a2 / a1 of the bilevel loss at first and at last, and a3 / a2, which the unknowns should not exceed.
constexpr double kSmallestRatio = 1e-2, kLargestRatio = 100, kViolation = 10;
constexpr std::int64_t kKept = 4;  // networks of a round
// The penalty on couplings counts as much as this many residuals: many samples need it less.
constexpr double kCouplingResiduals = 50;
// The factor of that penalty for networks without couplings, and the size of those that are left.
constexpr double kUncoupled = 1e3, kNoCoupling = 1e-2;
// The weight of the inertia that unknowns are held to.
constexpr double kInertial = 1e3;
// The weight of the hidden units' weights: without it some units become steps between two samples.
constexpr double kSteepness = 1e-4;
constexpr std::int64_t kTrainedAtOnce = 16, kFittedAtOnce = 4;  // the sizes of tasks
// The share of the starts that grow from the networks of the round before.
constexpr double kGrown = 0.25;
// The random q of which a new unknown has the best, and the size of its random effects on the others.
constexpr std::int64_t kHinges = 16;
constexpr double kCoupling = 0.3;

// The least squares of a round go through these stages.
struct Stage {
  double iterations;       // as a multiple of finishing_iterations
  double coupling;         // the factor of its penalty
  std::int64_t residuals;  // for each parameter, by random samples; 0: all samples
  std::int64_t most;       // starts of each group that are left
};
constexpr Stage kStages[] = {{0.25, 1, 8, 24},   {0.25, 1, 8, 12},    {0.25, 1, 8, 4}, {0.25, 1, 32, 4},
                             {0.25, 0.1, 32, 4}, {0.25, 0.01, 32, 4}, {1, 0, 0, 4}};
constexpr std::int64_t kRandomStates = 4000;
constexpr std::int64_t kPivotsPerUnknown = 4;
// Rounds with as many unknowns, where the best of the first is almost exact, or exact but without another exact network
// that agrees with it.
constexpr std::int64_t kAlike = 3;
constexpr const char* kTheta = "theta";

Tensor scale_of(const Tensor& x) {
  const Tensor scale = x.std(0, /*unbiased=*/false);
  return at::where(scale > 0, scale, 1);
}

// How the LCPs of networks that are searched are solved: without the methods for hard ones, which only those are whose
// M is nearly singular relative to its diagonal. They count as unsolved, and their networks are left.
SolveOptions few_pivots(const LcpNetwork& network) {
  SolveOptions options;
  options.max_pivots = kPivotsPerUnknown * network->options.unknowns();
  return options;
}

// The errors of the predictions, relative to the units of the outputs: [..., n, d] for theta [..., n or 1, size()].
Tensor errors(const LcpNetwork& network, const Tensor& theta, const Motion& motion) {
  return (network->step(motion.x, theta, few_pivots(network)).y - motion.v_next) / network->output_unit;
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

// The mean square error of a network, relative to the units of the outputs.
double mean_square(const LcpNetwork& network, const Tensor& theta, const Motion& motion) {
  return std::pow(root_mean_squares(network, theta.unsqueeze(0), motion)[0].item<double>(), 2);
}

}  // namespace

Search::Search(Motion training, Motion validation, const SearchOptions& options)
    : training_(std::move(training)),
      validation_(std::move(validation)),
      options_(options),
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
      const Candidate& best = rounds_[k].best.front();
      if (best.options.q() != q) continue;
      rounds.push_back(static_cast<std::int64_t>(k));
      stalled = best.validation_error <= kImproved * lowest ? 0 : stalled + 1;
      lowest = std::min(lowest, best.validation_error);
    }
    const auto plan = [&](std::int64_t unknowns, std::int64_t parents) {
      return Plan{LcpNetworkOptions(options_.parts).q(q).unknowns(unknowns), parents, options_.starts};
    };
    if (rounds.empty()) {
      // A network begins as the best affine ones of the same size, since it contains them.
      const bool after_affine = q == Dependence::kNetwork && options_.affine && options_.loss != SearchLoss::kOneSided;
      return plan(first_unknowns(), after_affine ? 0 : -1);
    }
    const auto best_of = [&](std::int64_t round) -> const Candidate& {
      return rounds_[static_cast<std::size_t>(round)].best.front();
    };
    const auto alike = [&](std::int64_t round) {
      return std::count_if(rounds.begin(), rounds.end(),
                           [&](std::int64_t k) { return unknowns(k) == unknowns(round); });
    };
    // Each round with as many unknowns as earlier ones has twice the starts of the one before.
    const auto again = [&](std::int64_t round) {
      return Plan{LcpNetworkOptions(options_.parts).q(q).unknowns(unknowns(round)), -1,
                  options_.starts << alike(round)};
    };
    std::int64_t fewest = -1;  // the first of the exact ones with the fewest unknowns
    for (const std::int64_t k : rounds) {
      if (!exact(best_of(k)) || (wanted > 0 && unknowns(k) != wanted)) continue;
      if (fewest < 0 || unknowns(k) < unknowns(fewest)) fewest = k;
    }
    if (fewest >= 0) {
      if (confirmed(exact_predictions())) return std::nullopt;
      const bool reduced = unknowns(rounds.back()) < unknowns(fewest) || alike(fewest) > 1;
      if (!reduced && wanted == 0 && unknowns(fewest) > 1) return plan(unknowns(fewest) - 1, fewest);
      if (alike(fewest) < kAlike) return again(fewest);
      return std::nullopt;
    }
    std::int64_t most = 0;
    for (const std::int64_t k : rounds) most = std::max(most, unknowns(k));
    const bool almost_exact = q == Dependence::kAffine && lowest < kAlmostAffine;
    const std::int64_t patience = q == Dependence::kNetwork ? kNetworkPatience : almost_exact ? 1 : kAffinePatience;
    // More unknowns do not help a network that has learned all training samples, but not what they have in common.
    const bool learned = best_of(rounds.back()).training_error < kExact;
    if (unknowns(rounds.back()) == most && most < last_unknowns() && ((stalled < patience && !learned) || wanted > 0)) {
      return plan(most + 1, rounds.back());
    }
    // Where affine networks are almost exact, other starts may be exact.
    const std::int64_t closest = *std::min_element(rounds.begin(), rounds.end(), [&](std::int64_t a, std::int64_t b) {
      return best_of(a).validation_error < best_of(b).validation_error;
    });
    if (almost_exact && alike(closest) < kAlike) return again(closest);
  }
  return std::nullopt;
}

std::int64_t Search::most_rounds() const {
  const std::int64_t kinds = (options_.affine ? 1 : 0) + (options_.network ? 1 : 0);
  return kinds * (last_unknowns() - first_unknowns() + 1) + last_unknowns() - 1 + kAlike - 1;
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

// Gives the unknowns from `first` on, one after the other, the best of some random q: each is 0 at a random sample, and
// the best is that for which the errors, [s, d], that the unknowns before it leave are closest to a multiple of
// z = max(0, -q).
void Search::match(const LcpNetwork& network, const Tensor& theta, Tensor errors, std::int64_t first,
                   const at::Generator& numbers) const {
  const Tensor x = training_.x / input_unit_;
  const Tensor M = network->entry("M", theta), G = network->entry("G_bias", theta),
               bias = network->entry("q_bias", theta), weight = network->entry("q_weight", theta);
  for (std::int64_t k = first; k < network->options.unknowns(); ++k) {
    const Tensor slopes = torch::randn({kHinges, x.size(1)}, numbers, torch::kDouble);
    const Tensor zeros = x.index_select(0, torch::randint(x.size(0), {kHinges}, numbers, torch::kLong));
    const Tensor offsets = (slopes * zeros).sum(-1);
    const Tensor z = ((x.unsqueeze(1) * slopes).sum(-1) - offsets).relu();  // [s, kHinges]
    const Tensor squares = z.square().sum(0).clamp_min(1e-300);
    const Tensor products = (z.unsqueeze(-1) * errors.unsqueeze(1)).sum(0);  // [kHinges, d]
    const Tensor best = (products.square().sum(-1) / squares).argmax();
    const auto at_best = [&](const Tensor& of, std::int64_t dim) { return of.index_select(dim, best).select(dim, 0); };
    const Tensor effect = at_best(products, 0) / at_best(squares, 0);
    weight[k].copy_(-at_best(slopes, 0));
    bias[k].copy_(at_best(offsets, 0));
    G.select(1, k).copy_(effect);
    M[k].slice(0, 0, k).mul_(kCoupling);
    M.select(1, k).slice(0, 0, k).mul_(kCoupling);
    M[k][k] = std::sqrt(std::max(0.0, 1 - network->options.definiteness()));
    errors = errors - at_best(z, 1).unsqueeze(-1) * effect;
  }
}

// The groups of starts: random ones, and those that grow or shrink from the networks of an earlier round. Of both, half
// have no penalty on rest.
std::vector<Search::Group> Search::starts(const LcpNetwork& network, const Plan& plan) const {
  const at::Generator numbers = generator(options_.seed, Stream::kStarts, static_cast<std::int64_t>(rounds_.size()));
  // A network with some of the unknowns of an earlier one, and new ones beside them.
  const auto changed = [&](const Candidate& parent, const Tensor& kept) {
    LcpNetworkOptions fewer = parent.options;
    const LcpNetwork part = this->network(fewer.unknowns(kept.numel()));
    const Tensor theta_part = this->network(parent.options)->restricted(parent.theta, kept);
    Tensor theta = network->grown(*part, theta_part, numbers);
    match(network, theta, -errors(part, theta_part, training_), kept.numel(), numbers);
    return theta;
  };
  std::vector<Tensor> all;
  std::vector<Candidate> parents;
  if (plan.parents >= 0) {
    parents = rounds_[static_cast<std::size_t>(plan.parents)].best;
    if (parents.size() > kKept) parents.erase(parents.begin() + kKept, parents.end());
  }
  const bool reduces = plan.parents >= 0 && plan.options.unknowns() < unknowns(plan.parents);
  if (reduces) {
    for (const Candidate& parent : parents) {
      const std::int64_t n = parent.options.unknowns();
      for (std::int64_t k = 0; k < n; ++k) {
        const Tensor others = at::cat({at::arange(k), at::arange(k + 1, n)});
        all.push_back(changed(parent, others));
        if (n < 3) continue;
        // Without another one, for which there is a new one.
        const std::int64_t l = torch::randint(n - 1, {1}, numbers, torch::kLong).item<std::int64_t>();
        all.push_back(changed(parent, others.index({at::arange(n - 1) != l})));
      }
    }
    return {{at::stack(all), options_.rest_penalty}};
  }
  const auto grown = plan.parents < 0 ? 0 : static_cast<std::int64_t>(kGrown * static_cast<double>(plan.starts));
  for (std::int64_t k = 0; k < grown; ++k) {
    const Candidate& parent = parents[static_cast<std::size_t>(k) % parents.size()];
    // Unknowns that no sample has active are not kept, others get their places.
    const Tensor active = (this->network(parent.options)->step(training_.x, parent.theta).z > 0).any(0);
    if (active.any().item<bool>()) all.push_back(changed(parent, active.nonzero().squeeze(-1)));
  }
  const Tensor random = network->random(plan.starts - static_cast<std::int64_t>(all.size()), numbers);
  const Tensor f = network->parts(training_.x, random.unsqueeze(1)).f;
  for (std::int64_t k = 0; k < random.size(0); ++k) {
    const Tensor y = training_.v_next / output_unit_;
    match(network, random[k], f.defined() ? y - f[k] : y, 0, numbers);
  }
  std::vector<Group> groups;
  const auto add = [&](const Tensor& theta) {
    for (const std::int64_t k : {0, 1}) {
      const Tensor half = theta.slice(0, k, std::nullopt, 2);
      if (half.size(0) > 0) groups.push_back({half, k == 0 ? options_.rest_penalty : 0});
    }
  };
  if (!all.empty()) add(at::stack(all));
  add(random);
  return groups;
}

// The loss of each network, [starts], when the fraction `done` of the iterations is completed.
Tensor Search::loss_of(const LcpNetwork& network, const Tensor& theta, const Motion& batch, double done) const {
  const Tensor y = batch.v_next / output_unit_;
  if (options_.loss == SearchLoss::kPrediction) {
    SolveOptions solve_options;
    solve_options.kappa = options_.kappa * std::pow(std::max(0.0, 1 - 2 * done), 2);
    const Tensor prediction = network->step(batch.x, theta.unsqueeze(1), solve_options).y;
    return (prediction / output_unit_ - y).square().mean({1, 2});
  }
  const auto parts = network->parts(batch.x, theta.unsqueeze(1));
  if (options_.loss == SearchLoss::kBilevel) {
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

// Adam on the loss.
Tensor Search::trained(const LcpNetwork& network, Tensor theta, std::int64_t stream,
                       const std::function<bool()>& stopped) const {
  if (options_.loss == SearchLoss::kOneSided) {
    // y = z+ - z-; this loss has no derivative in G.
    const std::int64_t d = network->options.outputs();
    network->entry("G_bias", theta).copy_(at::cat({at::eye(d), -at::eye(d)}, 1));
  }
  theta = theta.clone().requires_grad_();
  torch::optim::Adam adam({theta}, torch::optim::AdamOptions(options_.learning_rate));
  at::Generator batches = generator(options_.seed, Stream::kMinibatches, stream);
  const std::int64_t batch_size = std::min(options_.batch_size, training_.count());
  for (std::int64_t k = 0; k < options_.iterations && !(stopped && stopped()); ++k) {
    const double done = static_cast<double>(k) / static_cast<double>(options_.iterations);
    for (auto& group : adam.param_groups()) group.options().set_lr(cosine_step_size(options_.learning_rate, done));
    adam.zero_grad();
    const Motion batch = training_.at(torch::randint(training_.count(), {batch_size}, batches, torch::kLong));
    loss_of(network, theta, batch, done).nan_to_num().sum().backward();
    adam.step();
  }
  return theta.detach();
}

// The Levenberg-Marquardt method on the samples `motion`, with the penalty on couplings multiplied by `factor` and the
// penalty `rest` on the activity in samples that rest.
Tensor Search::fitted(const LcpNetwork& network, const Motion& motion, const Tensor& theta, std::int64_t iterations,
                      double factor, double rest, const std::function<bool()>& stopped, bool inertial) const {
  if (stopped && stopped()) return theta;
  const Tensor resting = rests(motion.v_next).nonzero().squeeze(-1);
  const double residuals = static_cast<double>(motion.v_next.numel());
  const double coupling = factor * options_.coupling_penalty * std::sqrt(std::min(residuals, kCouplingResiduals));
  const auto linearized = [&](const Tensor& at_theta, const Tensor&) {
    const auto [values, jacobian] = network->linearize(motion.x, at_theta, few_pivots(network));
    const std::int64_t d = motion.v_next.size(1);
    Linearization here{(values.slice(2, 0, d) - motion.v_next / network->output_unit).flatten(1),
                       jacobian.slice(2, 0, d).flatten(1, 2)};
    if (resting.numel() > 0 && rest > 0) {
      const auto forces = [&](const Tensor& of) {
        return rest * of.index_select(1, resting).slice(2, d).flatten(1, 2);
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
    if (inertial) {
      add([&](const Tensor& rows) {
        const std::int64_t first = options_.first_velocity;
        const Tensor units = output_unit_ / input_unit_.slice(0, first, first + d);
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
  identification::LeastSquaresOptions options;
  options.max_iterations = iterations;
  return identification::least_squares(linearized, theta, options).theta;
}

std::vector<Candidate> Search::ranked(const LcpNetwork& network, const Tensor& theta) const {
  const torch::NoGradGuard no_grad;
  const Tensor training_error = root_mean_squares(network, theta, training_);
  const Tensor validation_error = root_mean_squares(network, theta, validation_);
  const Tensor resting = rests(training_.v_next).nonzero().squeeze(-1);
  const Tensor coupled = (couplings(network, theta).abs() > kNoCoupling).any(-1);
  std::vector<Candidate> all;
  for (std::int64_t k = 0; k < theta.size(0); ++k) {
    const Tensor rests = (network->step(training_.x.index_select(0, resting), theta[k]).y == 0).all(1);
    all.push_back({network->options, theta[k].clone(), training_error[k].item<double>(),
                   validation_error[k].item<double>(),
                   resting.numel() > 0 ? rests.to(torch::kDouble).mean().item<double>() : 1, coupled[k].item<bool>()});
  }
  std::stable_sort(all.begin(), all.end(), [](const Candidate& a, const Candidate& b) { return score(a) < score(b); });
  std::vector<Candidate> best;
  std::int64_t kept[2] = {0, 0};  // of those without and with couplings
  for (const Candidate& c : all) {
    if (kept[c.coupled ? 1 : 0]++ < kKept || precise(c)) best.push_back(c);
  }
  return best;
}

// States, [s, inputs], whose components are those of different samples.
Tensor Search::random_states() const {
  const at::Generator numbers = generator(options_.seed, Stream::kRandomStates);
  std::vector<Tensor> columns;
  for (const Tensor& column : training_.x.unbind(1)) {
    columns.push_back(
        column.index_select(0, torch::randint(training_.count(), {kRandomStates}, numbers, torch::kLong)));
  }
  return at::stack(columns, 1);
}

// The networks of all rounds with the wanted number of unknowns.
std::vector<const Candidate*> Search::candidates() const {
  std::vector<const Candidate*> all;
  for (const Round& round : rounds_) {
    for (const Candidate& c : round.best) {
      if (options_.unknowns == 0 || c.options.unknowns() == options_.unknowns) all.push_back(&c);
    }
  }
  return all;
}

// What those of them that predict the samples up to rounding predict for the random states, relative to the units.
std::vector<Tensor> Search::exact_predictions() const {
  const torch::NoGradGuard no_grad;
  const Tensor states = random_states();
  std::vector<Tensor> all;
  for (const Candidate* c : candidates()) {
    if (precise(*c)) all.push_back(network(c->options)->step(states, c->theta).y / output_unit_);
  }
  return all;
}

std::optional<double> Search::disagreement(const Candidate& candidate) const {
  const torch::NoGradGuard no_grad;
  const std::vector<Tensor> all = exact_predictions();
  if (all.size() < 2) return std::nullopt;
  const Tensor here = network(candidate.options)->step(random_states(), candidate.theta).y / output_unit_;
  return differences(here, all).sum().item<double>() / static_cast<double>(all.size() - (precise(candidate) ? 1 : 0));
}

void Search::advance(const std::function<bool()>& stopped, const std::function<void(double)>& progress,
                     const std::function<bool()>& hurried) {
  const auto plan = next();
  TORCH_INTERNAL_ASSERT(plan);
  const OneThread one_thread;
  const LcpNetwork network = this->network(plan->options);
  const auto round = static_cast<std::int64_t>(rounds_.size());
  const torch::NoGradGuard no_grad;
  std::vector<Group> groups = starts(network, *plan);
  std::int64_t count = 0;
  for (const Group& group : groups) count += group.theta.size(0);
  const bool trains = (options_.loss != SearchLoss::kPrediction || options_.kappa > 0) && plan->parents < 0;
  const auto ended = [&] { return (stopped && stopped()) || (hurried && hurried()); };
  // In units of finishing_iterations of all networks; Adam counts as one, and so does the fit without couplings.
  double done = 0, all_work = (trains ? 1 : 0) + 1;
  for (const Stage& stage : kStages) all_work += stage.iterations;
  std::mutex reporting;
  // share: of all work. work: of the parameters of some networks of a group, and the group, to others.
  const auto in_tasks = [&](std::int64_t size, double share,
                            const std::function<Tensor(const Tensor&, const Group&)>& work) {
    std::vector<std::pair<std::size_t, Tensor>> parts;
    for (std::size_t g = 0; g < groups.size(); ++g) {
      for (const Tensor& part : groups[g].theta.split(size)) parts.emplace_back(g, part);
    }
    const double before = done;
    const auto found = divide_tasks(static_cast<std::int64_t>(parts.size()), options_.threads, [&](std::int64_t k) {
      const auto& [g, part] = parts[static_cast<std::size_t>(k)];
      Checkpoint result{{}, {{kTheta, work(part, groups[g])}}};
      const std::scoped_lock lock(reporting);
      done += share / static_cast<double>(parts.size());
      if (progress) progress(std::min(done / all_work, 1.0));
      return result;
    });
    done = before + share;
    for (std::size_t g = 0; g < groups.size(); ++g) {
      std::vector<Tensor> of_group;
      for (std::size_t k = 0; k < parts.size(); ++k) {
        if (parts[k].first == g) of_group.push_back(found[k].tensors.at(kTheta));
      }
      groups[g].theta = at::cat(of_group);
    }
  };
  ProcessGroup& processes = ProcessGroup::current();
  const auto all_stopped = [&] { return processes.largest(stopped && stopped() ? 1 : 0) != 0; };
  if (trains) {
    in_tasks(kTrainedAtOnce, 1, [&](const Tensor& part, const Group&) {
      const torch::AutoGradMode grad(true);
      return trained(network, part, round, ended);
    });
  }
  const Tensor order =
      torch::randperm(training_.count(), generator(options_.seed, Stream::kMinibatches, -2), torch::kLong);
  const Motion shuffled = training_.at(order);
  std::vector<Group> unfinished;  // before the last stage
  for (const Stage& stage : kStages) {
    const auto iterations =
        static_cast<std::int64_t>(stage.iterations * static_cast<double>(options_.finishing_iterations));
    const std::int64_t enough = stage.residuals * network->size() / training_.v_next.size(1);
    const Motion samples =
        stage.residuals == 0 ? training_ : Motion{shuffled.x.slice(0, 0, enough), shuffled.v_next.slice(0, 0, enough)};
    unfinished = groups;
    in_tasks(kFittedAtOnce, stage.iterations, [&](const Tensor& part, const Group& group) {
      return fitted(network, samples, part, iterations, stage.coupling, group.rest_penalty, ended);
    });
    if (all_stopped()) return;
    for (Group& group : groups) {
      const Tensor best = root_mean_squares(network, group.theta, training_).argsort(/*stable=*/true, 0, false);
      group.theta = group.theta.index_select(0, best.slice(0, 0, stage.most));
    }
  }
  // Where a network is exact but for less than half of the validation samples, it had not seen the like of these; it
  // learns them, too.
  std::vector<Tensor> left;
  left.reserve(groups.size());
  for (const Group& group : groups) left.push_back(group.theta);
  Tensor theta = at::cat(left);
  const Tensor predicted = (errors(network, theta.unsqueeze(1), validation_).abs() < kExact).all(2);
  const Tensor complete = (root_mean_squares(network, theta, training_) < kExact)
                              .logical_and(predicted.to(torch::kDouble).mean(1) > 0.5)
                              .nonzero()
                              .squeeze(-1);
  if (complete.numel() > 0) {
    const auto found = divide_tasks(1, 1, [&](std::int64_t) {
      return Checkpoint{{},
                        {{kTheta, fitted(network, all(), theta.index_select(0, complete), options_.finishing_iterations,
                                         0, options_.rest_penalty, ended)}}};
    });
    theta.index_copy_(0, complete, found[0].tensors.at(kTheta));
  }
  // The same networks without couplings, which noisy samples may not be enough to determine.
  if (complete.numel() == 0 && plan->options.unknowns() > 1) {
    groups = unfinished;
    in_tasks(kFittedAtOnce, 1, [&](const Tensor& part, const Group& group) {
      return fitted(network, training_, part, options_.finishing_iterations, kUncoupled, group.rest_penalty, ended);
    });
    for (const Group& group : groups) theta = at::cat({theta, group.theta});
  }
  if (all_stopped()) return;
  if (progress) progress(1);
  rounds_.push_back({count, ranked(network, theta)});
}

Motion Search::all() const {
  return {at::cat({training_.x, validation_.x}), at::cat({training_.v_next, validation_.v_next})};
}

Candidate Search::best() const {
  const std::vector<const Candidate*> all = candidates();
  if (all.empty()) return rounds_.back().best.front();
  if (std::any_of(all.begin(), all.end(), [](const Candidate* candidate) { return exact(*candidate); })) {
    return most_agreed(all, exact_predictions());
  }
  return simplest(all, training_.v_next.numel(), validation_.v_next.numel());
}

Candidate Search::refitted(const Candidate& candidate, const Motion& motion) const {
  const OneThread one_thread;
  const torch::NoGradGuard no_grad;
  const LcpNetwork network = this->network(candidate.options);
  const Motion mirrored{at::cat({motion.x, -motion.x}), at::cat({motion.v_next, -motion.v_next})};
  Candidate fit = candidate;
  if (options_.finishing_iterations > 0) {
    fit.theta = fitted(network, candidate.odd ? mirrored : motion, candidate.theta.unsqueeze(0),
                       2 * options_.finishing_iterations, candidate.coupled ? 0 : kUncoupled, options_.rest_penalty, {},
                       candidate.inertial)[0];
  }
  return fit;
}

Candidate Search::simplified(const Candidate& candidate, const Motion& motion) const {
  const torch::NoGradGuard no_grad;
  const LcpNetwork network = this->network(candidate.options);
  const auto criterion = [&](const Candidate& c) {
    return information(c, mean_square(network, c.theta, motion), motion.v_next.numel());
  };
  Candidate best = refitted(candidate, motion);
  // Fewer residuals than parameters contradict nothing.
  if (exact(candidate) || static_cast<double>(motion.v_next.numel()) <= parameters(candidate)) return best;
  const LcpNetworkOptions& parts = candidate.options;
  const bool may_be_inertial = !candidate.coupled && parts.q() == Dependence::kAffine &&
                               parts.G() == Dependence::kConstant && parts.f() == Dependence::kAbsent;
  for (bool Candidate::*assumption : {&Candidate::odd, &Candidate::inertial}) {
    if (assumption == &Candidate::inertial && !may_be_inertial) continue;
    Candidate simpler = best;
    simpler.*assumption = true;
    simpler = refitted(simpler, motion);
    if (criterion(simpler) < criterion(best)) best = simpler;
  }
  return best;
}

}  // namespace lcp::training
