// Moving-horizon estimation: the state of a system, with its parameters, while data arrive.
//
// After each step k the window of the last steps s, ..., k is fitted by least squares,
//
//   |xi|^2 + sum_i |w_i|^2 + sum_i |r_i(x_i)|^2   over xi and w,   x_s = m + L xi,   x_{i+1} = F(x_i, w_i),
//
// where r_i are the residuals of the data, and |xi|^2, the arrival cost, stands for the data before the window: they
// give x_s the mean m and the covariance L L'. When the window moves on, the first of its terms are linearised at the
// fit and eliminated, which is exact for linear systems.
//
//   [RRM] Rao, Rawlings, Mayne: Constrained state estimation for nonlinear discrete-time systems: stability and moving
//         horizon approximations, IEEE TAC 48, 2003.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>

#include "lcp/export.h"

namespace lcp::identification {

/// b independent systems, whose states have d components. Both functions must be differentiable in forward mode.
struct HorizonModel {
  /// F: states [..., b, d] and process noise [..., b, r], which is standard normal, to the next states.
  std::function<at::Tensor(const at::Tensor& x, const at::Tensor& w)> propagate;
  /// The errors of the data of a step, over their standard deviation: [..., b, m].
  std::function<at::Tensor(const at::Tensor& x, std::int64_t step)> residuals;
};

struct MovingHorizonOptions {
  std::int64_t window = 10;          ///< number of steps of the window, >= 1
  std::int64_t noises = 0;           ///< r
  std::int64_t max_iterations = 20;  ///< iterations of each fit
};

struct MovingHorizon {
  at::Tensor mean;        ///< [steps + 1, b, d], the state after each step, by the data up to it
  at::Tensor std;         ///< [steps + 1, b, d], to first order
  at::Tensor iterations;  ///< [steps + 1, b], int64, of each fit
};

/// Estimates the states of `steps` steps. Each fit starts at the one before.
///   mean: [b, d], float64, the state before the data of step 0. deviation: [b, d], its standard deviations.
/// The result has no gradient. Throws c10::Error where a shape, a dtype or an option does not fit.
LCP_API MovingHorizon moving_horizon(const HorizonModel& model, const at::Tensor& mean, const at::Tensor& deviation,
                                     std::int64_t steps, const MovingHorizonOptions& options = {});

}  // namespace lcp::identification
