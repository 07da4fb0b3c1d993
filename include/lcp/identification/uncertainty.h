// How sure a least-squares estimate is.
//
//   [SW] Seber, Wild: Nonlinear Regression, Wiley, 1989, chapter 2.
#pragma once

#include <ATen/core/Tensor.h>

namespace lcp::identification {

struct Uncertainty {
  at::Tensor covariance;  ///< [b, p, p], of what the data determine: 0 along what they do not
  at::Tensor std;         ///< [b, p]; infinite for a parameter that the data do not determine
  at::Tensor rank;        ///< [b], int64, how many independent combinations of the parameters the data determine
  at::Tensor null_space;  ///< [b, p, p], rows: orthonormal directions, of parameters scaled to equal effect where they
                          ///< have one, that no datum sees; the last rank rows are 0
};

/// To first order, for independent errors of equal standard deviation: noise^2 (J'J)^-1, the inverse of the
/// Gauss-Newton Hessian. A combination whose effect is below 1e-10 of the largest, with the columns of J scaled to
/// equal length, is not determined.
///   jacobian: [b, m, p], float64, of the residuals. noise: [b] or [], their standard deviation.
Uncertainty uncertainty(const at::Tensor& jacobian, const at::Tensor& noise);

}  // namespace lcp::identification
