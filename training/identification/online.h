// What the programs that follow tracks, one observation after the other, have in common.
#pragma once

#include <torch/types.h>

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "identification/track_model.h"

namespace lcp::training {

struct OnlineFlags {
  SystemFlag bodies;
  RunFlags run = {};
  double largest_mu = 1, velocity_std = 0;

  void add_to(CommandLine& line, const std::string& help_of_largest_mu);
};

/// The end of --help.
constexpr const char* kOnlineNote =
    "Data of your own: CSV as for identify_shooting and identify_tripod. --noise must be that of the data. The "
    "initial\n"
    "velocity must be known: --velocity, with an error of about --velocity-std.";

/// The knowledge of an estimator after each step of the tracks.
struct Followed {
  torch::Tensor mean, std;                                     ///< [steps + 1, b, 1 + 2 k], of (mu, q, v)
  std::vector<std::pair<const char*, torch::Tensor>> columns;  ///< further ones of history.csv, [steps + 1, b]
  nlohmann::json metrics;                                      ///< further ones
  std::string summary = {};                                    ///< printed in the end
  std::string warning = {};                                    ///< part of `unexplained`
  bool prints_std = true;
};

/// Follows the tracks, in that many parts of each of their steps. progress: to be called in each step.
using Follow = std::function<Followed(const TrackProblem& problem, const TrackModel& model, std::int64_t substeps,
                                      const std::function<void(std::int64_t step)>& progress)>;

/// The states a step after x, [..., 1 + 2 k]. A negative mu, which an estimate may have, stays as it is, and counts as
/// 0.
///   noise: [..., k], random forces over their standard deviations; not read where the problem has none.
torch::Tensor next_state(const TrackModel& model, const torch::Tensor& x, const torch::Tensor& noise,
                         std::int64_t substeps);

/// What is known of (mu, q, v) before the first step, [b, 1 + 2 k]: a mu between 0 and --largest-mu, the first
/// observation, and --velocity.
struct Belief {
  torch::Tensor mean, deviation;
};
Belief first_belief(const OnlineFlags& flags, const TrackProblem& problem);

/// Parses, follows and reports: history.csv, fit.csv, metrics.json. The bias of the estimates by the length of the
/// steps is known from estimates with half of it, see lcp/identification/interval.h. Simulated tracks were made by the
/// steps of the model, and have none. Returns an exit status.
///   needs_noise: why --noise must be > 0.
int follow_tracks(CommandLine& line, OnlineFlags& flags, int argc, const char* const* argv,
                  const std::string& needs_noise, const std::string& figure, const Follow& follow);

}  // namespace lcp::training
