// The search for a network that ends in an LCP: many random starts, of which the best are finished by least squares.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <functional>

#include "lcp/nn/lcp_network.h"
#include "network/motion.h"

namespace lcp::training {

struct SearchOptions {
  std::int64_t starts = 64;
  std::int64_t iterations = 400;  ///< of Adam
  double learning_rate = 0.02;
  std::int64_t batch_size = 64;
  /// The derivative at first is that of the central path z w = kappa, which an unknown that is never active has as
  /// well; kappa falls to 0 in the first half of the iterations.
  double kappa = 0.1;
  std::int64_t finished = 64;  ///< how many starts the Levenberg-Marquardt method finishes
  std::int64_t finishing_iterations = 80;
  std::int64_t seed = 0;
};

/// What the search found, one network in each row, best first.
struct SearchResult {
  torch::Tensor theta;             ///< [k, size()], see nn::LcpNetwork
  torch::Tensor training_error;    ///< [k], root of the mean square, relative to the network's output_unit
  torch::Tensor validation_error;  ///< [k], the same
  /// [k]: the share of random states, each component from another sample, whose active set occurs in no training
  /// sample. What a network predicts there was not learned from anything.
  torch::Tensor unseen;
};

/// Learns the parameters of `network`, whose units must be those of the data, from random starts:
///
/// 1. Adam on all starts at once, by minibatches, on the squared error of the prediction through lcp::solve.
/// 2. The Levenberg-Marquardt method on the best of them, at first with a penalty on the off-diagonal entries of M,
///    relative to its diagonal, that falls to 0: of the networks that predict the training data equally well, it
///    prefers those whose unknowns do not affect each other where the data do not show that they do.
///
/// Networks of equal validation error, up to rounding, are ordered by `unseen`.
///   progress: called with the completed fraction, 0 to 1.
SearchResult search(const nn::LcpNetwork& network, const Motion& training, const Motion& validation,
                    const SearchOptions& options, const std::function<void(double)>& progress = {});

}  // namespace lcp::training
