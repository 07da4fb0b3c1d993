// Fits many networks that end in an LCP to samples at once, from given parameters. Tests call what is exported.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <functional>

#include "lcp/export.h"
#include "lcp/learning/network_search.h"

namespace lcp::learning::fitting {

/// What fit minimises beside the errors of the predictions, and how it damps its steps.
struct FitPenalties {
  double coupling = 0;  ///< the factor of NetworkSearchOptions::coupling_penalty
  double rest = 0;      ///< the weight of the activity, the sum of |G_i| z_i, in samples that rest
  /// Whether each unknown is held to stop the body along its direction, see NetworkSearch::simplified.
  bool inertial = false;
  /// See LeastSquaresOptions. M = L L' + ..., so that the derivatives of the residuals in an entry of L vanish with it,
  /// and damping relative to them allows large steps.
  double least_curvature = 0;
};

/// The rows of the samples in which all outputs are at most rest_below: int64, ascending.
LCP_API torch::Tensor resting_rows(const Samples& samples, double rest_below);

/// The errors of the predictions, relative to the units of the outputs: [..., n, d] for theta [..., n or 1, size()].
/// LCPs are solved with few pivots and without the methods for hard problems. Only networks whose M is nearly singular
/// relative to its diagonal would need these; their errors are NaN.
LCP_API torch::Tensor errors(const nn::LcpNetwork& network, const torch::Tensor& theta, const Samples& samples);

/// The roots of the mean squares of these errors, [starts] for theta [starts, size()]; infinite where one is NaN.
LCP_API torch::Tensor root_mean_squares(const nn::LcpNetwork& network, const torch::Tensor& theta,
                                        const Samples& samples);

/// The entries of M beside its diagonal, relative to it: [..., n (n - 1)].
LCP_API torch::Tensor couplings(const nn::LcpNetwork& network, const torch::Tensor& theta);

/// Adam on the loss of the options, from theta, [starts, size()]. stream: of the random minibatches. It ends early once
/// `stopped` returns true.
LCP_API torch::Tensor train(const nn::LcpNetwork& network, const Samples& samples, torch::Tensor theta,
                            std::int64_t stream, const NetworkSearchOptions& options,
                            const std::function<bool()>& stopped);

/// The Levenberg-Marquardt method on the errors and the penalties, from theta, [starts, size()]. The weights of hidden
/// units have a small penalty, too, which keeps them from becoming steps between two samples. Returns theta as it is if
/// `stopped` returns true.
LCP_API torch::Tensor fit(const nn::LcpNetwork& network, const Samples& samples, const torch::Tensor& theta,
                          std::int64_t iterations, const FitPenalties& penalties, const NetworkSearchOptions& options,
                          const std::function<bool()>& stopped);

}  // namespace lcp::learning::fitting
