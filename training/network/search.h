// The search for a network that ends in an LCP: rounds of many random starts, of which the best are finished by least
// squares, with a growing number of unknowns.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "lcp/nn/lcp_network.h"
#include "network/motion.h"

namespace lcp::training {

struct SearchOptions {
  /// The parts of the networks; its number of unknowns is ignored.
  nn::LcpNetworkOptions parts = {1, 1, 1};
  bool affine = true;         ///< whether networks with an affine q are tried
  bool network = true;        ///< whether those whose q is a network are tried
  std::int64_t unknowns = 0;  ///< 0: found by the search
  std::int64_t starts = 64;
  std::int64_t iterations = 400;  ///< of Adam, in each round
  double learning_rate = 0.02;
  std::int64_t batch_size = 64;
  /// The derivative at first is that of the central path z w = kappa, which an unknown that is never active has as
  /// well; kappa falls to 0 in the first half of the iterations.
  double kappa = 0.1;
  std::int64_t finishing_iterations = 80;  ///< of the Levenberg-Marquardt method; 0: not used
  double coupling_penalty = 5e-3;
  double rest_penalty = 0.1;
  std::int64_t seed = 0;
  std::int64_t threads = 1;
};

/// A learned network: its options with the units of the data, and its parameters.
struct Candidate {
  nn::LcpNetworkOptions options;
  torch::Tensor theta;      ///< [size]
  double training_error;    ///< root of the mean square, relative to the units of the outputs
  double validation_error;  ///< the same
  /// The share of random states, each component from another sample, whose active set occurs in no training sample.
  /// What the network predicts there was not learned from anything.
  double unseen;
  double rest;  ///< the share of the resting training samples that it predicts to rest exactly
};

/// The best networks of one round, best first.
using Round = std::vector<Candidate>;

class Search {
 public:
  Search(Motion training, Motion validation, const SearchOptions& options);

  /// Whether another round can improve the result.
  bool finished() const { return !next().has_value(); }

  /// The largest number of rounds that a search takes.
  std::int64_t most_rounds() const;

  /// Does a round, unless `stopped` returns true meanwhile, which it asks often: then nothing changes.
  ///   progress: called with the completed fraction of the round, 0 to 1, by one thread at a time.
  void advance(const std::function<bool()>& stopped = {}, const std::function<void(double)>& progress = {});

  const std::vector<Round>& rounds() const { return rounds_; }

  /// The network that the validation data choose among all.
  Candidate best() const;

  /// That network, fitted to the training and the validation data together.
  Candidate refitted(const Candidate& candidate) const;

  const torch::Tensor& input_unit() const { return input_unit_; }
  const torch::Tensor& output_unit() const { return output_unit_; }
  nn::LcpNetwork network(const nn::LcpNetworkOptions& options) const;

  void restore(std::vector<Round> rounds) { rounds_ = std::move(rounds); }

 private:
  struct Plan {
    nn::LcpNetworkOptions options;
    std::int64_t parents;  // the round whose networks grow, or -1
  };

  std::int64_t first_unknowns() const;
  std::int64_t last_unknowns() const;
  std::optional<Plan> next() const;
  torch::Tensor starts(const nn::LcpNetwork& network, const Plan& plan) const;
  torch::Tensor trained(const nn::LcpNetwork& network, torch::Tensor theta, std::int64_t iterations, double from,
                        double to, double kappa_at_first, std::int64_t stream,
                        const std::function<bool()>& stopped) const;
  torch::Tensor fitted(const nn::LcpNetwork& network, const torch::Tensor& theta, std::int64_t iterations,
                       double factor, const std::function<bool()>& stopped) const;
  Round ranked(const nn::LcpNetwork& network, const torch::Tensor& theta) const;

  Motion training_, validation_;
  SearchOptions options_;
  torch::Tensor resting_;  // the training samples that rest exactly after the step
  torch::Tensor input_unit_, output_unit_;
  std::vector<Round> rounds_;
};

}  // namespace lcp::training
