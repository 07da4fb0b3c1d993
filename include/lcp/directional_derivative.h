// One-sided directional derivatives of the solution of an LCP, exact at ties, and the distance to the next change of
// the active set.
//
//   [CPS] Cottle, Pang, Stone: The Linear Complementarity Problem, SIAM, 2009, sec. 7.4.
#pragma once

#include <ATen/core/Tensor.h>

#include "lcp/export.h"

namespace lcp {

struct DirectionalDerivative {
  at::Tensor dz;      ///< [..., n]
  at::Tensor dw;      ///< [..., n]
  at::Tensor status;  ///< [...], int8; the values of lcp::Status for the LCP of the direction
};

/// The limit dz of (z(M + t dM, q + t dq) - z(M, q)) / t for t -> 0+, and the limit dw of the same quotient for w.
/// Pairs with z_i > 0 keep dw_i = 0, and pairs with w_i > 0 keep dz_i = 0. Ties solve 0 <= dz_i perp dw_i >= 0, where
/// dw = M dz + dM z + dq: a mixed LCP on the critical cone [CPS]. Where there is no tie, this is the derivative of
/// lcp::solve in forward mode.
///
///   M, dM: [..., n, n], q, z, dq: [..., n]; the batch dimensions broadcast. z solves LCP(q, M).
///
/// The status is kBadInput where z (of an unsolved element) or the direction has a NaN. Unless it is kSolved, dz and dw
/// are NaN. Not differentiable. Throws c10::Error for other shapes, dtypes or devices.
LCP_API DirectionalDerivative directional_derivative(const at::Tensor& M, const at::Tensor& q, const at::Tensor& z,
                                                     const at::Tensor& dM, const at::Tensor& dq);

/// The largest t >= 0, [...], up to which the solution at q + t dq keeps its active set { i : z_i > 0 }, so that z is
/// affine in t. It is infinity where the active set never changes, and NaN where z has a NaN. The arguments are as for
/// directional_derivative. Not differentiable.
LCP_API at::Tensor gradient_radius(const at::Tensor& M, const at::Tensor& q, const at::Tensor& z, const at::Tensor& dq);

}  // namespace lcp
