// The accuracy of a solution of an LCP, and how well its derivative is defined.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>

#include "lcp/export.h"

namespace lcp {

/// The numbers of each element. With w = M z + q and s_i = |q_i| + sum_j |M_ij z_j|, the size of z_j is max_i |M_ij
/// z_j| / s_i. The size of w_i is |w_i| / s_i. Sizes are in [0, 1] and do not depend on the units.
struct Certificate {
  at::Tensor residual;  ///< [...], r(z) = max_i |min(z_i, w_i)|, in the units of z and w
  at::Tensor margin;    ///< [...], distance to the nearest tie: min_i max(size of z_i, size of w_i); infinity for n = 0
  /// [...], the condition number of M_aa in the 2-norm with a = { i : z_i > 0 }; infinity where M_aa is singular, 1
  /// where a is empty.
  at::Tensor condition;
  at::Tensor rank;  ///< [...], int64, the rank of M_aa; if less than |a|, the derivative is a least-squares one
  at::Tensor ties;  ///< [..., n], bool: pairs with z_i = w_i = 0, where `ties` of SolveOptions decides the gradient
};

/// Certifies z as a solution of LCP(q, M), whichever method found it.
///
///   M: [..., n, n], q, z: [..., n], as in lcp::solve; the batch dimensions broadcast.
///   tolerance: a pair is a tie where both its sizes are at most this. Absent: 64 epsilon of the dtype, the rounding
///   error below which the derivative treats a pair as a tie.
///   sizes: as in SolveOptions. Beyond them nothing is tied.
///
/// Where M, q or z has a NaN, the numbers are NaN, the rank 0, and nothing is tied. Nothing is differentiable. Throws
/// c10::Error for other shapes, dtypes or devices, and for a tolerance out of its range.
LCP_API Certificate certify(const at::Tensor& M, const at::Tensor& q, const at::Tensor& z,
                            std::optional<double> tolerance = {}, const std::optional<at::Tensor>& sizes = {});

}  // namespace lcp
