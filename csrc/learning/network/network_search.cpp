#include "lcp/learning/network_search.h"

#include <torch/types.h>

#include <algorithm>
#include <cmath>
#include <tuple>

#include "lcp/detail/one_thread.h"
#include "learning/network/candidate.h"
#include "learning/network/checks.h"
#include "learning/network/fit.h"
#include "learning/network/random.h"
#include "learning/network/round.h"
#include "learning/network/starts.h"

namespace lcp::learning {

using namespace fitting;

namespace {

using nn::Dependence;
using nn::LcpNetwork;
using nn::LcpNetworkOptions;
using torch::Tensor;

// Where affine networks have a smaller error than this, networks whose q is one are not tried.
constexpr double kAlmostAffine = 1e-3;
// A round improves on the earlier ones where its validation error is at most this multiple of theirs.
constexpr double kImproved = 0.9;
// Rounds without an improvement after which affine networks, and others, do not grow any more. The error of an affine
// network may stay large until it has all unknowns of the samples, and is then round-off.
constexpr std::int64_t kAffinePatience = 5, kNetworkPatience = 2;
// The largest number of unknowns that is tried for each velocity, beside one more.
constexpr std::int64_t kUnknownsPerVelocity = 4;
constexpr std::int64_t kKept = 4;  // networks of a round
// The size of couplings that count as none.
constexpr double kNoCoupling = 1e-2;
constexpr std::int64_t kRandomStates = 4000;
// A last fit is not kept where it changes the predictions for random states by more than this multiple of the network's
// validation error: an unknown that few samples have active may then grow without bounds where there are none.
constexpr double kMoved = 100;
// Rounds with as many unknowns, where the best of the first is almost exact, or exact but without another exact network
// that agrees with it.
constexpr std::int64_t kAlike = 4;
// LeastSquaresOptions::least_curvature of the last fit, which may stall at its start without this bound. The rounds do
// without it: with it, fewer networks of the planar block with 8 directions end at round-off.
constexpr double kLeastCurvature = 1e-8;

Tensor scale_of(const Tensor& x) {
  const Tensor scale = x.std(0, /*unbiased=*/false);
  return at::where(scale > 0, scale, 1);
}

// The mean square error of a network, relative to the units of the outputs.
double mean_square(const LcpNetwork& network, const Tensor& theta, const Samples& samples) {
  return std::pow(root_mean_squares(network, theta.unsqueeze(0), samples)[0].item<double>(), 2);
}

}  // namespace

NetworkLoss network_loss_named(const std::string& name) {
  if (name == "prediction") return NetworkLoss::kPrediction;
  if (name == "bilevel") return NetworkLoss::kBilevel;
  TORCH_CHECK(name == "one_sided", "loss must be prediction, bilevel or one_sided; got ", name);
  return NetworkLoss::kOneSided;
}

std::pair<Samples, Samples> split_samples(const Samples& samples, double share, std::int64_t seed) {
  const auto part = static_cast<std::int64_t>(share * static_cast<double>(samples.count()));
  const std::int64_t validation = std::max<std::int64_t>(1, part);
  const Tensor order = torch::randperm(samples.count(), generator(seed, Stream::kMinibatches, -1), torch::kLong);
  return {samples.at(order.slice(0, validation)), samples.at(order.slice(0, 0, validation))};
}

NetworkSearch::NetworkSearch(const Samples& training, const Samples& validation, const NetworkSearchOptions& options)
    : training_(checked_samples(training.x, training.y, "training.x", "training.y")),
      validation_(checked_samples(validation.x, validation.y, "validation.x", "validation.y")),
      options_(options),
      input_unit_(scale_of(training_.x)),
      output_unit_(scale_of(training_.y)) {
  for (const auto& [name, of_training, of_validation] :
       {std::tuple("inputs", training_.x.size(1), validation_.x.size(1)),
        std::tuple("outputs", training_.y.size(1), validation_.y.size(1))}) {
    TORCH_CHECK(of_training == of_validation, "the samples for validation must have ", of_training, " ", name,
                ", as the others; got ", of_validation);
  }
  TORCH_CHECK(training_.count() > 0 && validation_.count() > 0,
              "there must be samples to learn from and for validation; got ", training_.count(), " and ",
              validation_.count());
  check_options(options, training_);
  options_.parts.inputs(training_.x.size(1)).outputs(training_.y.size(1));
  LcpNetwork(options_.parts);  // throws where another option is out of its range
}

LcpNetwork NetworkSearch::network(const LcpNetworkOptions& options) const {
  return make_network(options, input_unit_, output_unit_);
}

std::optional<NetworkSearch::Plan> NetworkSearch::next() const {
  const std::int64_t wanted = options_.unknowns;
  double lowest = INFINITY;  // of the errors so far
  for (const Dependence q : {Dependence::kAffine, Dependence::kNetwork}) {
    if (!(q == Dependence::kAffine ? options_.affine : options_.network)) continue;
    if (lowest < kAlmostAffine) return std::nullopt;
    std::vector<std::int64_t> rounds;  // those with this q
    lowest = INFINITY;
    std::int64_t stalled = 0;  // rounds since the last improvement
    for (std::size_t k = 0; k < rounds_.size(); ++k) {
      const NetworkCandidate& best = rounds_[k].best.front();
      if (best.options.q() != q) continue;
      rounds.push_back(static_cast<std::int64_t>(k));
      stalled = best.validation_error <= kImproved * lowest ? 0 : stalled + 1;
      lowest = std::min(lowest, best.validation_error);
    }
    const auto plan = [&](std::int64_t unknowns, std::int64_t parents) {
      return Plan{LcpNetworkOptions(options_.parts).q(q).unknowns(unknowns), parents, options_.starts};
    };
    if (rounds.empty()) {
      // A network may begin as the best affine ones of the same size, since it contains them.
      const bool after_affine = q == Dependence::kNetwork && options_.affine && !trains_first();
      return plan(first_unknowns(), after_affine ? 0 : -1);
    }
    const auto best_of = [&](std::int64_t round) -> const NetworkCandidate& {
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
    std::int64_t first = -1, fewest = -1;  // of the exact ones: the first, and the first with the fewest unknowns
    for (const std::int64_t k : rounds) {
      if (!best_of(k).exact() || (wanted > 0 && unknowns(k) != wanted)) continue;
      if (first < 0) first = k;
      if (fewest < 0 || unknowns(k) < unknowns(fewest)) fewest = k;
    }
    if (fewest >= 0) {
      if (confirmed(exact_predictions())) return std::nullopt;
      const bool reduced = unknowns(rounds.back()) < unknowns(fewest) || alike(fewest) > 1;
      if (!reduced && wanted == 0 && unknowns(fewest) > 1) return plan(unknowns(fewest) - 1, fewest);
      for (const std::int64_t k : {fewest, first}) {
        if (alike(k) < kAlike) return again(k);
      }
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

std::int64_t NetworkSearch::most_rounds() const {
  const std::int64_t kinds = (options_.affine ? 1 : 0) + (options_.network ? 1 : 0);
  return kinds * (last_unknowns() - first_unknowns() + 1) + last_unknowns() - 1 + 2 * (kAlike - 1);
}

bool NetworkSearch::trains_first() const { return options_.loss != NetworkLoss::kPrediction || options_.kappa > 0; }

std::int64_t NetworkSearch::first_unknowns() const {
  const std::int64_t d = training_.y.size(1);
  if (options_.loss == NetworkLoss::kOneSided) return 2 * d;  // those of y = z+ - z-
  const std::int64_t first = d + 1;
  return options_.unknowns > 0 ? std::min(options_.unknowns, first) : first;
}

std::int64_t NetworkSearch::last_unknowns() const {
  return options_.unknowns > 0 ? options_.unknowns : kUnknownsPerVelocity * training_.y.size(1) + 1;
}

std::vector<NetworkCandidate> NetworkSearch::ranked(const LcpNetwork& network, const Tensor& theta) const {
  const torch::NoGradGuard no_grad;
  const Tensor training_error = root_mean_squares(network, theta, training_);
  const Tensor validation_error = root_mean_squares(network, theta, validation_);
  const Tensor resting = resting_rows(training_, options_.rest_below);
  const Tensor coupled = (couplings(network, theta).abs() > kNoCoupling).any(-1);
  std::vector<NetworkCandidate> all;
  for (std::int64_t k = 0; k < theta.size(0); ++k) {
    const Tensor rests = (network->step(training_.x.index_select(0, resting), theta[k]).y == 0).all(1);
    all.push_back({network->options, theta[k].clone(), training_error[k].item<double>(),
                   validation_error[k].item<double>(),
                   resting.numel() > 0 ? rests.to(torch::kDouble).mean().item<double>() : 1, coupled[k].item<bool>()});
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const NetworkCandidate& a, const NetworkCandidate& b) { return score(a) < score(b); });
  std::vector<NetworkCandidate> best;
  std::int64_t kept[2] = {0, 0};  // of those without and with couplings
  for (const NetworkCandidate& c : all) {
    if (kept[c.coupled ? 1 : 0]++ < kKept || c.precise()) best.push_back(c);
  }
  return best;
}

// States, [s, inputs], whose components are those of different samples.
Tensor NetworkSearch::random_states() const {
  const at::Generator numbers = generator(options_.seed, Stream::kRandomStates);
  std::vector<Tensor> columns;
  for (const Tensor& column : training_.x.unbind(1)) {
    columns.push_back(
        column.index_select(0, torch::randint(training_.count(), {kRandomStates}, numbers, torch::kLong)));
  }
  return at::stack(columns, 1);
}

// What a network predicts for these states, relative to the units: [s, d].
Tensor NetworkSearch::prediction(const NetworkCandidate& candidate, const Tensor& states) const {
  return network(candidate.options)->step(states, candidate.theta).y / output_unit_;
}

// The networks of all rounds with the wanted number of unknowns.
std::vector<const NetworkCandidate*> NetworkSearch::candidates() const {
  std::vector<const NetworkCandidate*> all;
  for (const NetworkRound& round : rounds_) {
    for (const NetworkCandidate& c : round.best) {
      if (options_.unknowns == 0 || c.options.unknowns() == options_.unknowns) all.push_back(&c);
    }
  }
  return all;
}

// What those of them that predict the samples up to rounding predict for the random states, relative to the units.
std::vector<Tensor> NetworkSearch::exact_predictions() const {
  const torch::NoGradGuard no_grad;
  const Tensor states = random_states();
  std::vector<Tensor> all;
  for (const NetworkCandidate* c : candidates()) {
    if (c->precise()) all.push_back(prediction(*c, states));
  }
  return all;
}

std::optional<double> NetworkSearch::disagreement(const NetworkCandidate& candidate) const {
  const torch::NoGradGuard no_grad;
  const std::vector<Tensor> all = exact_predictions();
  if (all.size() < 2) return std::nullopt;
  const Tensor here = prediction(candidate, random_states());
  return differences(here, all).sum().item<double>() / static_cast<double>(all.size() - (candidate.precise() ? 1 : 0));
}

void NetworkSearch::advance(const std::function<bool()>& stopped, const std::function<void(double)>& progress,
                            const std::function<bool()>& hurried) {
  const auto plan = next();
  TORCH_INTERNAL_ASSERT(plan);
  const lcp::detail::OneThread one_thread;
  const torch::NoGradGuard no_grad;
  const LcpNetwork network = this->network(plan->options);
  const auto round = static_cast<std::int64_t>(rounds_.size());
  std::vector<NetworkCandidate> parents;
  if (plan->parents >= 0) {
    parents = rounds_[static_cast<std::size_t>(plan->parents)].best;
    if (parents.size() > kKept) parents.erase(parents.begin() + kKept, parents.end());
  }
  const std::vector<StartGroup> groups = draw_starts(network, plan->starts, parents, training_, options_.rest_penalty,
                                                     generator(options_.seed, Stream::kStarts, round));
  std::int64_t count = 0;
  for (const StartGroup& group : groups) count += group.theta.size(0);
  RoundFit fit(network, training_, validation_, options_, {stopped, progress, hurried});
  const bool trains = trains_first() && plan->parents < 0;
  const auto theta = fit.run(groups, trains ? std::optional(round) : std::nullopt);
  if (theta) rounds_.push_back({count, ranked(network, *theta)});
}

Samples NetworkSearch::all() const {
  return {at::cat({training_.x, validation_.x}), at::cat({training_.y, validation_.y})};
}

NetworkCandidate NetworkSearch::best() const {
  const std::vector<const NetworkCandidate*> all = candidates();
  if (all.empty()) return rounds_.back().best.front();
  if (std::any_of(all.begin(), all.end(), [](const NetworkCandidate* candidate) { return candidate->exact(); })) {
    return most_agreed(all, exact_predictions());
  }
  return simplest(all, training_.y.numel(), validation_.y.numel());
}

NetworkCandidate NetworkSearch::refitted(const NetworkCandidate& candidate, const Samples& samples) const {
  const lcp::detail::OneThread one_thread;
  const torch::NoGradGuard no_grad;
  const LcpNetwork network = this->network(candidate.options);
  const Samples mirrored{at::cat({samples.x, -samples.x}), at::cat({samples.y, -samples.y})};
  NetworkCandidate refit = candidate;
  if (options_.finishing_iterations > 0) {
    refit.theta = fit(network, candidate.odd ? mirrored : samples, candidate.theta.unsqueeze(0),
                      2 * options_.finishing_iterations,
                      {candidate.coupled ? 0 : kUncoupled, options_.rest_penalty, candidate.inertial, kLeastCurvature},
                      options_, {})[0];
  }
  return refit;
}

NetworkCandidate NetworkSearch::simplified(const NetworkCandidate& candidate, const Samples& samples) const {
  if (options_.finishing_iterations == 0) return candidate;
  const torch::NoGradGuard no_grad;
  const LcpNetwork network = this->network(candidate.options);
  const auto criterion = [&](const NetworkCandidate& c) {
    return information(c, mean_square(network, c.theta, samples), samples.y.numel());
  };
  NetworkCandidate best = refitted(candidate, samples);
  const Tensor states = random_states();
  const double moved = (prediction(best, states) - prediction(candidate, states)).square().mean().sqrt().item<double>();
  if (!(moved <= kMoved * std::max(candidate.validation_error, kExact))) best = candidate;
  // Fewer residuals than parameters contradict nothing.
  if (candidate.exact() || static_cast<double>(samples.y.numel()) <= parameters(candidate)) return best;
  const LcpNetworkOptions& parts = candidate.options;
  const bool may_be_inertial = options_.first_velocity && !candidate.coupled && parts.q() == Dependence::kAffine &&
                               parts.G() == Dependence::kConstant && parts.f() == Dependence::kAbsent;
  for (bool NetworkCandidate::*assumption : {&NetworkCandidate::odd, &NetworkCandidate::inertial}) {
    if (assumption == &NetworkCandidate::inertial && !may_be_inertial) continue;
    NetworkCandidate simpler = best;
    simpler.*assumption = true;
    simpler = refitted(simpler, samples);
    if (criterion(simpler) < criterion(best)) best = simpler;
  }
  return best;
}

}  // namespace lcp::learning
