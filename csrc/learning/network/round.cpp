#include "learning/network/round.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "lcp/detail/run_tasks.h"
#include "learning/network/candidate.h"
#include "learning/network/fit.h"
#include "learning/network/random.h"

namespace lcp::learning::fitting {
namespace {

using torch::Tensor;

constexpr std::int64_t kStartsOfTask = 16;  // they are fitted in one batch, tasks in parallel

// The least squares of a round go through these stages. Few iterations on few samples tell which starts are hopeless;
// the penalty on couplings falls when only good ones are left, and the last stage has neither limit.
struct Stage {
  double iterations;       // as a multiple of finishing_iterations
  double coupling;         // the factor of its penalty
  std::int64_t residuals;  // for each parameter, by random samples; 0: all samples
  std::int64_t most;       // starts of each group that are left
};
constexpr Stage kStages[] = {{0.25, 1, 8, 24},   {0.25, 1, 8, 12},    {0.25, 1, 8, 4}, {0.25, 1, 32, 4},
                             {0.25, 0.1, 32, 4}, {0.25, 0.01, 32, 4}, {1, 0, 0, 4}};

}  // namespace

RoundFit::RoundFit(const nn::LcpNetwork& network, const Samples& training, const Samples& validation,
                   const NetworkSearchOptions& options, RoundCallbacks callbacks)
    : network_(network),
      training_(training),
      validation_(validation),
      options_(options),
      callbacks_(std::move(callbacks)) {}

std::optional<Tensor> RoundFit::run(std::vector<StartGroup> groups, std::optional<std::int64_t> trained) {
  groups_ = std::move(groups);
  // Adam counts as one, and so does the fit without couplings.
  done_ = 0;
  all_work_ = (trained ? 1 : 0) + 1;
  for (const Stage& stage : kStages) all_work_ += stage.iterations;
  if (trained) {
    in_tasks(1, [&](const Tensor& part, const StartGroup&) {
      const torch::AutoGradMode grad(true);
      return train(network_, training_, part, *trained, options_, [&] { return ended(); });
    });
  }
  if (!go_through_stages()) return std::nullopt;
  Tensor theta = all_theta();
  const Tensor complete = almost_exact(theta);
  if (complete.numel() > 0) {
    theta.index_copy_(0, complete, fitted_to_all(theta.index_select(0, complete)));
  } else if (network_->options.unknowns() > 1) {
    // The same networks without couplings, which noisy samples may not be enough to determine.
    groups_ = unfinished_;
    minimise(1, options_.finishing_iterations, training_, kUncoupled);
    theta = at::cat({theta, all_theta()});
  }
  if (stopped()) return std::nullopt;
  if (callbacks_.progress) callbacks_.progress(1);
  return theta;
}

bool RoundFit::ended() const {
  return (callbacks_.stopped && callbacks_.stopped()) || (callbacks_.hurried && callbacks_.hurried());
}

bool RoundFit::stopped() const {
  const bool here = callbacks_.stopped && callbacks_.stopped();
  return options_.processes.any ? options_.processes.any(here) : here;
}

// The results of work(0), ..., work(count - 1).
std::vector<Tensor> RoundFit::divide(std::int64_t count, const std::function<Tensor(std::int64_t k)>& work) const {
  if (options_.processes.divide) return options_.processes.divide(count, options_.threads, work);
  std::vector<Tensor> results(static_cast<std::size_t>(count));
  lcp::detail::run_tasks(count, options_.threads,
                         [&](std::int64_t k) { results[static_cast<std::size_t>(k)] = work(k); });
  return results;
}

// Replaces the parameters of all groups. share: of all work. work: of the parameters of some networks of a group, and
// the group, to others.
void RoundFit::in_tasks(double share, const Work& work) {
  std::vector<std::pair<std::size_t, Tensor>> parts;
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    for (const Tensor& part : groups_[g].theta.split(kStartsOfTask)) parts.emplace_back(g, part);
  }
  const double before = done_;
  std::mutex reporting;
  const std::vector<Tensor> found = divide(static_cast<std::int64_t>(parts.size()), [&](std::int64_t k) {
    const auto& [g, part] = parts[static_cast<std::size_t>(k)];
    Tensor result = work(part, groups_[g]);
    const std::scoped_lock lock(reporting);
    done_ += share / static_cast<double>(parts.size());
    if (callbacks_.progress) callbacks_.progress(std::min(done_ / all_work_, 1.0));
    return result;
  });
  done_ = before + share;
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    std::vector<Tensor> of_group;
    for (std::size_t k = 0; k < parts.size(); ++k) {
      if (parts[k].first == g) of_group.push_back(found[k]);
    }
    groups_[g].theta = at::cat(of_group);
  }
}

// The Levenberg-Marquardt method on all networks.
void RoundFit::minimise(double share, std::int64_t iterations, const Samples& samples, double coupling) {
  in_tasks(share, [&](const Tensor& part, const StartGroup& group) {
    return fit(network_, samples, part, iterations, {coupling, group.rest_penalty}, options_, [&] { return ended(); });
  });
}

// Returns false where the round was stopped.
bool RoundFit::go_through_stages() {
  const Tensor order =
      torch::randperm(training_.count(), generator(options_.seed, Stream::kMinibatches, -2), torch::kLong);
  const Samples shuffled = training_.at(order);
  for (const Stage& stage : kStages) {
    const auto iterations =
        static_cast<std::int64_t>(stage.iterations * static_cast<double>(options_.finishing_iterations));
    const std::int64_t enough = stage.residuals * network_->size() / training_.y.size(1);
    const Samples samples =
        stage.residuals == 0 ? training_ : Samples{shuffled.x.slice(0, 0, enough), shuffled.y.slice(0, 0, enough)};
    unfinished_ = groups_;
    minimise(stage.iterations, iterations, samples, stage.coupling);
    if (stopped()) return false;
    for (StartGroup& group : groups_) {
      const Tensor best = root_mean_squares(network_, group.theta, training_).argsort(/*stable=*/true, 0, false);
      group.theta = group.theta.index_select(0, best.slice(0, 0, stage.most));
    }
  }
  return true;
}

Tensor RoundFit::all_theta() const {
  std::vector<Tensor> all;
  all.reserve(groups_.size());
  for (const StartGroup& group : groups_) all.push_back(group.theta);
  return at::cat(all);
}

// The numbers of the networks that are exact for the training samples and miss less than half of the validation
// samples: these show what no training sample shows.
Tensor RoundFit::almost_exact(const Tensor& theta) const {
  const Tensor predicted = (errors(network_, theta.unsqueeze(1), validation_).abs() < kExact).all(2);
  return (root_mean_squares(network_, theta, training_) < kExact)
      .logical_and(predicted.to(torch::kDouble).mean(1) > 0.5)
      .nonzero()
      .squeeze(-1);
}

// Networks that learn from the validation samples, too.
Tensor RoundFit::fitted_to_all(const Tensor& theta) const {
  const Samples all{at::cat({training_.x, validation_.x}), at::cat({training_.y, validation_.y})};
  return divide(1, [&](std::int64_t) {
    return fit(network_, all, theta, options_.finishing_iterations, {0, options_.rest_penalty}, options_,
               [&] { return ended(); });
  })[0];
}

}  // namespace lcp::learning::fitting
