// The covariance of a least-squares estimate.
//
//   [SW] Seber, Wild: Nonlinear Regression, Wiley, 1989, chapter 2.
#pragma once

#include <ATen/core/Tensor.h>

#include "lcp/export.h"

namespace lcp::identification {

struct Uncertainty {
  at::Tensor covariance;  ///< [b, p, p], of the determined combinations of parameters; the others contribute 0
  at::Tensor std;         ///< [b, p]; infinite for a parameter that the data do not determine
  at::Tensor rank;        ///< [b], int64, how many independent combinations of the parameters the data determine
  /// [b, p, p]: in its first p - rank rows, an orthonormal basis of the changes of the parameters that have no effect
  /// on the residuals; the other rows are 0. The parameters are scaled so that the columns of the Jacobian that are not
  /// 0 have length 1.
  at::Tensor null_space;
};

/// The uncertainty to first order, for independent errors of equal standard deviation: noise^2 (J'J)^-1, the inverse of
/// the Gauss-Newton Hessian. With the columns of J scaled to equal length, a combination whose effect is below 1e-10 of
/// the largest is not determined.
///   jacobian: [b, m, p], float64, of the residuals. noise: [b] or [], the standard deviation of the errors.
/// Throws c10::Error where a shape or a dtype does not fit.
LCP_API Uncertainty uncertainty(const at::Tensor& jacobian, const at::Tensor& noise);

}  // namespace lcp::identification
