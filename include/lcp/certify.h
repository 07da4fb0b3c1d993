// What is known of a solution of an LCP, and of the derivative there.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>

#include "lcp/export.h"

namespace lcp {

/// Per element. With w = M z + q and s_i = |q_i| + sum_j |M_ij z_j|, the size of z_j is max_i |M_ij z_j| / s_i and that
/// of w_i is |w_i| / s_i: numbers in [0, 1] that no choice of units changes.
struct Certificate {
  at::Tensor residual;  ///< [...], r(z) = max_i |min(z_i, w_i)|, in the units of z and w
  at::Tensor margin;    ///< [...], distance to the nearest tie: min_i max(size of z_i, size of w_i); infinity for n = 0
  at::Tensor
      condition;    ///< [...], of M_aa in the 2-norm, a = { i : z_i > 0 }; infinity where it is singular, 1 if empty
  at::Tensor rank;  ///< [...], int64, of M_aa: less than |a| where the derivative is a least-squares one
  at::Tensor ties;  ///< [..., n], bool: pairs with z_i = w_i = 0, where `ties` of SolveOptions decides the gradient
};

/// Certifies z, a solution of LCP(q, M) or what is taken for one.
///
///   M: [..., n, n], q, z: [..., n], as in lcp::solve; the batch dimensions broadcast.
///   tolerance: pairs of which both sizes are at most this are ties. Absent: those that the derivative takes for ties,
///   which are 0 within rounding (64 epsilon of the dtype).
///
/// Where M, q or z has a NaN, the numbers are NaN, the rank 0, and nothing is tied. Nothing is differentiable. Throws
/// c10::Error for shapes, dtypes, devices or a tolerance that are none of these.
LCP_API Certificate certify(const at::Tensor& M, const at::Tensor& q, const at::Tensor& z,
                            std::optional<double> tolerance = {});

}  // namespace lcp
