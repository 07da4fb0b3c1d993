// Kalman filters of bodies that slide: the state (mu, q, v) as a normal distribution.
//
//   [JU] Julier, Uhlmann: A new extension of the Kalman filter to nonlinear systems, Proc. SPIE 3068, 1997.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <functional>

#include "identification/online.h"

namespace lcp::training {

enum class KalmanFilter {
  kExtended,  ///< a step maps the covariance by its Jacobian at the mean
  /// A step maps 2 n points x +- sqrt(n) S_i of a distribution in n dimensions with the covariance S S', and the new
  /// mean and covariance are theirs: [JU] with kappa = 0, so that no weight is negative.
  kUnscented
};

/// Follows the tracks from first_belief. mu is kept from being negative in each step of the body, but not in the
/// estimate.
Followed kalman_filter(KalmanFilter kind, const OnlineFlags& flags, const TrackProblem& problem,
                       const TrackModel& model, std::int64_t substeps,
                       const std::function<void(std::int64_t)>& progress);

}  // namespace lcp::training
