// Nonlinear least squares for a batch of small problems.
//
//   [MNT] Madsen, Nielsen, Tingleff: Methods for Non-linear Least Squares Problems, 2nd ed., 2004, section 3.2.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>

#include "lcp/export.h"

namespace lcp::identification {

/// The residuals of b independent problems, differentiable in forward mode: theta [..., b, p] -> [..., b, m]. Leading
/// dimensions are further points at which the same problems are evaluated.
using Residuals = std::function<at::Tensor(const at::Tensor& theta)>;

struct Linearization {
  at::Tensor residuals;  ///< [b, m]
  at::Tensor jacobian;   ///< [b, m, p], exact; 0 where a parameter has no effect here
};

/// Evaluates the residuals and their Jacobian once, by forward-mode differentiation in all parameters of all problems
/// at the same time.
///   theta: [b, p].
/// Throws c10::Error where it is called by the residuals that it evaluates, since PyTorch has one level of forward
/// mode.
LCP_API Linearization linearize(const Residuals& residuals, const at::Tensor& theta);

struct LeastSquaresOptions {
  std::int64_t max_iterations = 100;
  /// The convergence test, relative to the 2-norm of the residuals. A problem ends where the next step J d of its
  /// linearised residuals has at most this size in the 2-norm, or where the step d is within the rounding of theta.
  double tolerance = 1e-8;
  /// A lower bound for the curvature in the damping. The damping of a parameter is relative to the square of its column
  /// of J, but to no less than this for each residual. With 0 the steps do not depend on the units of the parameters.
  /// However, where a column is almost 0, such as that of x in x^2 near x = 0, the steps may be too long until many
  /// were rejected.
  double least_curvature = 0;
  at::Tensor lower = {};  ///< [p], lower bounds of the parameters; undefined: none
  /// Called at the start and after each iteration with theta, [b, p], and the objectives, [b].
  std::function<void(std::int64_t iteration, const at::Tensor& theta, const at::Tensor& objective)> observer = nullptr;
};

enum class LeastSquaresStatus : std::int8_t {
  kConverged = 0,  ///< the gradient is 0 up to the tolerance, or the residuals are 0 up to the rounding of theta
  kStopped = 1,    ///< max_iterations ran out
  kUndefined = 2,  ///< the residuals are not finite at the start
  /// The gradient is not 0, but steps along it were rejected until they were too short to matter: at a kink of the
  /// residuals, or where the residuals do not follow their Jacobian.
  kStalled = 3
};

struct LeastSquares {
  at::Tensor theta;       ///< [b, p]; the start where the status is kUndefined
  at::Tensor objective;   ///< [b], the sum of squares
  at::Tensor residuals;   ///< [b, m], at theta
  at::Tensor jacobian;    ///< [b, m, p], at theta; the column of a parameter is 0 where it has no effect
  at::Tensor iterations;  ///< [b], int64
  at::Tensor status;      ///< [b], int8, LeastSquaresStatus
};

/// The Levenberg-Marquardt method with the damping of [MNT]. Each problem has its own damping and its own end, so that
/// its result does not depend on the others in the batch, to the last bit. A step to residuals that are not finite is
/// rejected.
///   start: [b, p], float64.
/// The result has no gradient. Throws c10::Error where a shape or a dtype does not fit.
LCP_API LeastSquares least_squares(const Residuals& residuals, const at::Tensor& start,
                                   const LeastSquaresOptions& options = {});

/// The method for residuals that are evaluated together with their Jacobian, for the problems that have not ended.
///   linearized: theta [k, p] and the numbers of these k problems, [k], int64.
LCP_API LeastSquares
least_squares(const std::function<Linearization(const at::Tensor& theta, const at::Tensor& problems)>& linearized,
              const at::Tensor& start, const LeastSquaresOptions& options = {});

}  // namespace lcp::identification
