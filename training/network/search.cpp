#include "network/search.h"

#include <torch/types.h>

#include <algorithm>
#include <cmath>
#include <mutex>
#include <utility>

#include "network/starts.h"
#include "run/one_thread.h"
#include "run/process_group.h"
#include "run/random.h"
#include "run/tasks.h"

namespace lcp::training {
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
// network may stay large until it has all unknowns of the motion, and is then round-off.
constexpr std::int64_t kAffinePatience = 5, kNetworkPatience = 2;
// The largest number of unknowns that is tried for each velocity, beside one more.
constexpr std::int64_t kUnknownsPerVelocity = 4;
constexpr std::int64_t kKept = 4;  // networks of a round
// The factor of the penalty on couplings for networks without any, and the size of those that are left.
constexpr double kUncoupled = 1e3, kNoCoupling = 1e-2;
constexpr std::int64_t kStartsOfTask = 16;  // they are fitted in one batch, tasks in parallel

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
// A last fit is not kept where it changes the predictions for random states by more than this multiple of the network's
// validation error: an unknown that few samples have active may then grow without bounds where there are none.
constexpr double kMoved = 100;
// Rounds with as many unknowns, where the best of the first is almost exact, or exact but without another exact network
// that agrees with it.
constexpr std::int64_t kAlike = 4;
// LeastSquaresOptions::least_curvature of the last fit, which may stall at its start without this bound. The rounds do
// without it: with it, fewer networks of the planar block with 8 directions end at round-off.
constexpr double kLeastCurvature = 1e-8;
constexpr const char* kTheta = "theta";

Tensor scale_of(const Tensor& x) {
  const Tensor scale = x.std(0, /*unbiased=*/false);
  return at::where(scale > 0, scale, 1);
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
  return make_network(options, input_unit_, output_unit_);
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
      // A network may begin as the best affine ones of the same size, since it contains them.
      const bool after_affine = q == Dependence::kNetwork && options_.affine && !trains_first();
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
    std::int64_t first = -1, fewest = -1;  // of the exact ones: the first, and the first with the fewest unknowns
    for (const std::int64_t k : rounds) {
      if (!exact(best_of(k)) || (wanted > 0 && unknowns(k) != wanted)) continue;
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

std::int64_t Search::most_rounds() const {
  const std::int64_t kinds = (options_.affine ? 1 : 0) + (options_.network ? 1 : 0);
  return kinds * (last_unknowns() - first_unknowns() + 1) + last_unknowns() - 1 + 2 * (kAlike - 1);
}

bool Search::trains_first() const { return options_.loss != SearchLoss::kPrediction || options_.kappa > 0; }

std::int64_t Search::first_unknowns() const {
  const std::int64_t d = training_.v_next.size(1);
  if (options_.loss == SearchLoss::kOneSided) return 2 * d;  // those of y = z+ - z-
  const std::int64_t first = d + 1;
  return options_.unknowns > 0 ? std::min(options_.unknowns, first) : first;
}

std::int64_t Search::last_unknowns() const {
  return options_.unknowns > 0 ? options_.unknowns : kUnknownsPerVelocity * training_.v_next.size(1) + 1;
}

std::vector<Candidate> Search::ranked(const LcpNetwork& network, const Tensor& theta) const {
  const torch::NoGradGuard no_grad;
  const Tensor training_error = root_mean_squares(network, theta, training_);
  const Tensor validation_error = root_mean_squares(network, theta, validation_);
  const Tensor resting = resting_rows(training_, options_.rest_below);
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

// What a network predicts for these states, relative to the units: [s, d].
Tensor Search::prediction(const Candidate& candidate, const Tensor& states) const {
  return network(candidate.options)->step(states, candidate.theta).y / output_unit_;
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
    if (precise(*c)) all.push_back(prediction(*c, states));
  }
  return all;
}

std::optional<double> Search::disagreement(const Candidate& candidate) const {
  const torch::NoGradGuard no_grad;
  const std::vector<Tensor> all = exact_predictions();
  if (all.size() < 2) return std::nullopt;
  const Tensor here = prediction(candidate, random_states());
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
  std::vector<Candidate> parents;
  if (plan->parents >= 0) {
    parents = rounds_[static_cast<std::size_t>(plan->parents)].best;
    if (parents.size() > kKept) parents.erase(parents.begin() + kKept, parents.end());
  }
  std::vector<StartGroup> groups = draw_starts(network, plan->starts, parents, training_, options_.rest_penalty,
                                               generator(options_.seed, Stream::kStarts, round));
  std::int64_t count = 0;
  for (const StartGroup& group : groups) count += group.theta.size(0);
  const bool trains = trains_first() && plan->parents < 0;
  const auto ended = [&] { return (stopped && stopped()) || (hurried && hurried()); };
  // In units of finishing_iterations of all networks; Adam counts as one, and so does the fit without couplings.
  double done = 0, all_work = (trains ? 1 : 0) + 1;
  for (const Stage& stage : kStages) all_work += stage.iterations;
  std::mutex reporting;
  // share: of all work. work: of the parameters of some networks of a group, and the group, to others.
  const auto in_tasks = [&](std::int64_t size, double share,
                            const std::function<Tensor(const Tensor&, const StartGroup&)>& work) {
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
    in_tasks(kStartsOfTask, 1, [&](const Tensor& part, const StartGroup&) {
      const torch::AutoGradMode grad(true);
      return train(network, training_, part, round, options_, ended);
    });
  }
  const Tensor order =
      torch::randperm(training_.count(), generator(options_.seed, Stream::kMinibatches, -2), torch::kLong);
  const Motion shuffled = training_.at(order);
  std::vector<StartGroup> unfinished;  // before the last stage
  for (const Stage& stage : kStages) {
    const auto iterations =
        static_cast<std::int64_t>(stage.iterations * static_cast<double>(options_.finishing_iterations));
    const std::int64_t enough = stage.residuals * network->size() / training_.v_next.size(1);
    const Motion samples =
        stage.residuals == 0 ? training_ : Motion{shuffled.x.slice(0, 0, enough), shuffled.v_next.slice(0, 0, enough)};
    unfinished = groups;
    in_tasks(kStartsOfTask, stage.iterations, [&](const Tensor& part, const StartGroup& group) {
      return fit(network, samples, part, iterations, {stage.coupling, group.rest_penalty}, options_, ended);
    });
    if (all_stopped()) return;
    for (StartGroup& group : groups) {
      const Tensor best = root_mean_squares(network, group.theta, training_).argsort(/*stable=*/true, 0, false);
      group.theta = group.theta.index_select(0, best.slice(0, 0, stage.most));
    }
  }
  // Where a network misses only some validation samples, less than half, these show motion that no training sample
  // shows, and it learns from them, too.
  std::vector<Tensor> left;
  left.reserve(groups.size());
  for (const StartGroup& group : groups) left.push_back(group.theta);
  Tensor theta = at::cat(left);
  const Tensor predicted = (errors(network, theta.unsqueeze(1), validation_).abs() < kExact).all(2);
  const Tensor complete = (root_mean_squares(network, theta, training_) < kExact)
                              .logical_and(predicted.to(torch::kDouble).mean(1) > 0.5)
                              .nonzero()
                              .squeeze(-1);
  if (complete.numel() > 0) {
    const auto found = divide_tasks(1, 1, [&](std::int64_t) {
      return Checkpoint{{},
                        {{kTheta, fit(network, all(), theta.index_select(0, complete), options_.finishing_iterations,
                                      {0, options_.rest_penalty}, options_, ended)}}};
    });
    theta.index_copy_(0, complete, found[0].tensors.at(kTheta));
  }
  // The same networks without couplings, which noisy samples may not be enough to determine.
  if (complete.numel() == 0 && plan->options.unknowns() > 1) {
    groups = unfinished;
    in_tasks(kStartsOfTask, 1, [&](const Tensor& part, const StartGroup& group) {
      return fit(network, training_, part, options_.finishing_iterations, {kUncoupled, group.rest_penalty}, options_,
                 ended);
    });
    for (const StartGroup& group : groups) theta = at::cat({theta, group.theta});
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
  Candidate refit = candidate;
  if (options_.finishing_iterations > 0) {
    refit.theta =
        fit(network, candidate.odd ? mirrored : motion, candidate.theta.unsqueeze(0), 2 * options_.finishing_iterations,
            {candidate.coupled ? 0 : kUncoupled, options_.rest_penalty, candidate.inertial, kLeastCurvature}, options_,
            {})[0];
  }
  return refit;
}

Candidate Search::simplified(const Candidate& candidate, const Motion& motion) const {
  if (options_.finishing_iterations == 0) return candidate;
  const torch::NoGradGuard no_grad;
  const LcpNetwork network = this->network(candidate.options);
  const auto criterion = [&](const Candidate& c) {
    return information(c, mean_square(network, c.theta, motion), motion.v_next.numel());
  };
  Candidate best = refitted(candidate, motion);
  const Tensor states = random_states();
  const double moved = (prediction(best, states) - prediction(candidate, states)).square().mean().sqrt().item<double>();
  if (!(moved <= kMoved * std::max(candidate.validation_error, kExact))) best = candidate;
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
