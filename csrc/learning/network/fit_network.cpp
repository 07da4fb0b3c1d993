#include "lcp/learning/fit_network.h"

#include <c10/core/InferenceMode.h>
#include <torch/types.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <limits>
#include <thread>
#include <utility>

#include "learning/network/checks.h"
#include "learning/network/fit.h"

namespace lcp::learning {
namespace {

using torch::Tensor;

// Targets of at most this many standard deviations of their noise count as rest.
constexpr double kDeviationsOfRest = 3;

// The search, and what the caller is told of it.
class Fit {
 public:
  Fit(Samples training, Samples validation, const FitNetworkOptions& options)
      : options_(options),
        training_(std::move(training)),
        validation_(std::move(validation)),
        search_(training_, validation_, options_) {}

  FitResult run() {
    search();
    const torch::NoGradGuard no_grad;
    const NetworkCandidate chosen = search_.best(), last = search_.simplified(chosen, search_.all());
    FitResult result;
    result.network = search_.network(last.options);
    result.network->set_theta(last.theta);
    result.training_rmse = rmse(chosen, training_);
    result.validation_rmse = rmse(chosen, validation_);
    result.unknowns = chosen.options.unknowns();
    result.exact = chosen.exact();
    result.rest = chosen.rest;
    result.disagreement = search_.disagreement(chosen);
    result.odd = last.odd;
    result.inertial = last.inertial;
    result.out_of_time = out_of_time_;
    result.rounds = rounds_;
    return result;
  }

 private:
  using Clock = std::chrono::steady_clock;

  void search() {
    while (!search_.finished() && !(late() && !rounds_.empty())) {
      search_.advance(
          {}, [&](double done) { tell(done < 1 ? done : 0); }, [&] { return late(); });
      const NetworkRound& round = search_.rounds().back();
      const NetworkCandidate& best = round.best.front();
      rounds_.push_back({best.options.unknowns(), best.options.q(), rmse(best, training_), rmse(best, validation_),
                         best.rest, round.starts});
      tell(0);
    }
  }

  // Asked by all threads, and only where something is left to do.
  bool late() {
    if (!options_.budget_seconds) return false;
    const double seconds = std::chrono::duration<double>(Clock::now() - start_).count();
    if (seconds >= *options_.budget_seconds) out_of_time_ = true;
    return out_of_time_;
  }

  void tell(double done) const {
    if (!options_.progress || std::this_thread::get_id() != caller_) return;
    FitProgress progress{static_cast<std::int64_t>(rounds_.size()), done, 0, std::numeric_limits<double>::infinity()};
    for (const FitRound& round : rounds_) {
      if (round.validation_rmse >= progress.validation_rmse) continue;
      progress.unknowns = round.unknowns;
      progress.validation_rmse = round.validation_rmse;
    }
    options_.progress(progress);
  }

  // In the units of the targets.
  double rmse(const NetworkCandidate& candidate, const Samples& samples) const {
    const torch::NoGradGuard no_grad;
    const Tensor relative = fitting::errors(search_.network(candidate.options), candidate.theta, samples);
    const double found = (relative * search_.output_unit()).square().mean().sqrt().item<double>();
    return std::isnan(found) ? std::numeric_limits<double>::infinity() : found;
  }

  const FitNetworkOptions& options_;
  const Samples training_, validation_;
  NetworkSearch search_;
  std::vector<FitRound> rounds_;
  std::atomic<bool> out_of_time_ = false;
  const std::thread::id caller_ = std::this_thread::get_id();
  const Clock::time_point start_ = Clock::now();
};

}  // namespace

FitResult fit_network(const Tensor& inputs, const Tensor& targets, const FitNetworkOptions& options) {
  const c10::InferenceMode trainable(false);
  const Samples samples = fitting::checked_samples(inputs, targets, "inputs", "targets");
  FitNetworkOptions used = options;
  TORCH_CHECK(!options.budget_seconds || *options.budget_seconds > 0, "budget_seconds must be > 0; got ",
              *options.budget_seconds);
  if (options.noise) {
    TORCH_CHECK(std::isfinite(*options.noise) && *options.noise >= 0, "noise must be finite and >= 0; got ",
                *options.noise);
    if (options.rest_below == 0) used.rest_below = kDeviationsOfRest * *options.noise;
  }
  if (options.validation_samples) {
    const Samples& given = *options.validation_samples;
    const Samples validation =
        fitting::checked_samples(given.x, given.y, "inputs for validation", "targets for validation");
    return Fit(samples, validation, used).run();
  }
  TORCH_CHECK(options.validation > 0 && options.validation < 1, "validation must be a share in (0, 1); got ",
              options.validation);
  TORCH_CHECK(samples.count() >= 2, "inputs must have at least 2 rows, of which some are for validation; got ",
              samples.count());
  const auto [training, validation] = split_samples(samples, options.validation, options.seed);
  return Fit(training, validation, used).run();
}

}  // namespace lcp::learning
