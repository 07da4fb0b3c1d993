// Fits many networks that end in an LCP to motion at once, from given parameters.
//
//   [Tobin] Tobin: Estimation of relationships for limited dependent variables, Econometrica 26, 1958.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <functional>

#include "lcp/nn/lcp_network.h"
#include "network/motion.h"

namespace lcp::training {

/// What finds a first approximation, in rounds that begin with random starts alone. From there the Levenberg-Marquardt
/// method minimises the error of the prediction.
enum class SearchLoss {
  kPrediction,  ///< the same error; with kappa > 0 by Adam, too
  /// Adam on the bilevel loss (lcp/learning/bilevel_loss.h): the least error with which unknowns z >= 0 that violate
  /// the LCP a little explain the motion. The weight a2 of z'w grows from small to large values, and that of w < 0 is
  /// a3 = 10 a2.
  kBilevel,
  /// Adam on the errors of y = z+ - z- with two unknowns for each velocity, which the samples then determine:
  /// z+ = max(0, y), z- = max(0, -y). The errors of the rows of the LCP are M z + q where z > 0 and its negative part
  /// where z = 0, relative to the diagonal of M: a convex loss for affine q, without a dead zone, as that of censored
  /// data [Tobin].
  kOneSided
};

struct FitOptions {
  SearchLoss loss = SearchLoss::kPrediction;
  std::int64_t iterations = 400;  ///< of Adam, where it has a loss of its own
  double learning_rate = 0.02;
  std::int64_t batch_size = 64;
  /// > 0: kPrediction, too, begins with Adam, with the derivative of the central path z w = kappa, which an unknown
  /// that is never active has as well. kappa falls to 0 in the first half of the iterations.
  double kappa = 0;
  /// The weight of the off-diagonal entries of M, relative to its diagonal: of networks that predict the samples
  /// equally well, those are preferred whose unknowns do not affect each other where the samples do not show that they
  /// do. It falls to 0 in the end.
  double coupling_penalty = 5e-3;
  double rest_below = 0;            ///< m/s: velocities of at most this size count as rest
  std::int64_t first_velocity = 0;  ///< the first component of x that is a velocity before the step
  std::int64_t seed = 0;
};

/// What fit minimises beside the errors of the predictions, and how it damps its steps.
struct FitPenalties {
  double coupling = 0;    ///< the factor of FitOptions::coupling_penalty
  double rest = 0;        ///< the weight of the activity, the sum of |G_i| z_i, in samples that rest
  bool inertial = false;  ///< whether each unknown is held to stop the body along its direction, see Search::simplified
  /// See LeastSquaresOptions. M = L L' + ..., so that the derivatives of the residuals in an entry of L vanish with it,
  /// and damping relative to them allows large steps.
  double least_curvature = 0;
};

/// The rows of the samples in which all velocities after the step are at most rest_below, m/s: int64, ascending.
torch::Tensor resting_rows(const Motion& motion, double rest_below);

/// The errors of the predictions, relative to the units of the outputs: [..., n, d] for theta [..., n or 1, size()].
/// LCPs are solved with few pivots and without the methods for hard problems. Only networks whose M is nearly singular
/// relative to its diagonal would need these; their errors are NaN.
torch::Tensor errors(const nn::LcpNetwork& network, const torch::Tensor& theta, const Motion& motion);

/// The roots of the mean squares of these errors, [starts] for theta [starts, size()]; infinite where one is NaN.
torch::Tensor root_mean_squares(const nn::LcpNetwork& network, const torch::Tensor& theta, const Motion& motion);

/// The entries of M beside its diagonal, relative to it: [..., n (n - 1)].
torch::Tensor couplings(const nn::LcpNetwork& network, const torch::Tensor& theta);

/// Adam on the loss of the options, from theta, [starts, size()]. stream: of the random minibatches. It ends early once
/// `stopped` returns true.
torch::Tensor train(const nn::LcpNetwork& network, const Motion& motion, torch::Tensor theta, std::int64_t stream,
                    const FitOptions& options, const std::function<bool()>& stopped);

/// The Levenberg-Marquardt method on the errors and the penalties, from theta, [starts, size()]. The weights of hidden
/// units have a small penalty, too, which keeps them from becoming steps between two samples. Returns theta as it is if
/// `stopped` returns true.
torch::Tensor fit(const nn::LcpNetwork& network, const Motion& motion, const torch::Tensor& theta,
                  std::int64_t iterations, const FitPenalties& penalties, const FitOptions& options,
                  const std::function<bool()>& stopped);

}  // namespace lcp::training
