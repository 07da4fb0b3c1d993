// The fit of all starts of a round of the search.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "lcp/learning/network_search.h"
#include "learning/network/starts.h"

namespace lcp::learning::fitting {

/// The factor of the penalty on couplings for networks without any.
inline constexpr double kUncoupled = 1e3;

/// See NetworkSearch::advance. Each may be empty.
struct RoundCallbacks {
  std::function<bool()> stopped;
  std::function<void(double done)> progress;
  std::function<bool()> hurried;
};

/// Steps 1 and 2 of NetworkSearch, from the starts of a round to its networks.
class RoundFit {
 public:
  /// Keeps references to the network, the samples and the options.
  RoundFit(const nn::LcpNetwork& network, const Samples& training, const Samples& validation,
           const NetworkSearchOptions& options, RoundCallbacks callbacks);

  /// The parameters of the networks that are left in the end, [k, size()]; none where the round was stopped.
  ///   trained: the number of the round, where Adam comes first; its random minibatches depend on it.
  std::optional<torch::Tensor> run(std::vector<StartGroup> groups, std::optional<std::int64_t> trained);

 private:
  using Work = std::function<torch::Tensor(const torch::Tensor& theta, const StartGroup& group)>;

  bool ended() const;    // whether what is left should be skipped
  bool stopped() const;  // in one of the processes
  std::vector<torch::Tensor> divide(std::int64_t count, const std::function<torch::Tensor(std::int64_t k)>& work) const;
  void in_tasks(double share, const Work& work);
  void minimise(double share, std::int64_t iterations, const Samples& samples, double coupling);
  bool go_through_stages();
  torch::Tensor all_theta() const;
  torch::Tensor almost_exact(const torch::Tensor& theta) const;
  torch::Tensor fitted_to_all(const torch::Tensor& theta) const;

  const nn::LcpNetwork& network_;
  const Samples &training_, &validation_;
  const NetworkSearchOptions& options_;
  RoundCallbacks callbacks_;
  std::vector<StartGroup> groups_;
  std::vector<StartGroup> unfinished_;  // before the last stage
  double done_ = 0, all_work_ = 0;      // in units of finishing_iterations of all networks
};

}  // namespace lcp::learning::fitting
