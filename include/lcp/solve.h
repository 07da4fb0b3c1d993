// The linear complementarity problem as a differentiable, batched operator.
//
//   w = M z + q,   0 <= z  perp  w >= 0
//
//   [CPS] Cottle, Pang, Stone: The Linear Complementarity Problem, SIAM, 2009.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>

#include "lcp/export.h"
#include "lcp/method.h"
#include "lcp/name_of.h"
#include "lcp/status.h"
#include "lcp/ties.h"

namespace lcp {

struct SolveOptions {
  /// [...], int64, on M's device: the number of unknowns of each element; they are the first ones of the n. Each
  /// element gets the bits, also of its gradient, that it would get alone at its own size. Entries of M and q beyond
  /// its size are not read; z, w and the gradients are 0 there. lcp::pad makes such batches. Absent: n.
  std::optional<at::Tensor> sizes = {};

  /// An enumerator such as Method::kLemke, or its name, "lemke". With the default, every LCP of n <= 10 that has a
  /// solution is solved, up to rounding and the range of the dtype.
  NameOf<Method, method_name> method = Method::kAuto;

  /// An enumerator such as Ties::kActive, or its name, "active".
  NameOf<Ties, ties_name> ties = Ties::kInactive;

  /// If kappa > 0, the gradient is that of a point near the solution, the point z_i w_i = kappa of the central path. It
  /// is smooth across ties, while z and w stay exact. kappa has the units of z times w. Where Newton's method finds no
  /// such point, the gradient is NaN.
  double kappa = 0.0;

  /// An element is solved where r(z) = max_i |min(z_i, (M z + q)_i)| <= tolerance * max_i |q_i|. Absent: 1e-9 in
  /// float64, 1e-4 in float32.
  std::optional<double> tolerance = {};

  /// The number of pivots, bases and Newton steps that one element of the batch may take in total. Absent:
  ///   - 30 n pivots for each run of Lemke's method;
  ///   - 2^20 bases;
  ///   - 30 + n steps of Newton-min;
  ///   - 1500 steps along all paths; for n >= 200, 1500 / floor(n / 100)^2, but at least 100.
  /// A value may be larger than these limits where a method is named, but Method::kAuto keeps to them. An element that
  /// is left at these limits is kNotFound where n <= 10 or with Method::kAuto, else kPivotLimit.
  std::optional<std::int64_t> max_pivots = {};

  /// [..., n], of M's dtype and device: for example z of the last epoch or time step. The positive entries of the guess
  /// propose the active set, which is tried first at the cost of one linear solve. A guess may change which of several
  /// solutions is returned, but never the correctness of the result. A NaN counts as 0.
  std::optional<at::Tensor> guess = {};
};

struct SolveResult {
  at::Tensor z;       ///< [..., n]
  at::Tensor w;       ///< [..., n]
  at::Tensor status;  ///< [...], int8; the values of lcp::Status
};

/// Solves one LCP for each element of a batch. Elements are independent: the same inputs give the same bits for any
/// number of threads, batch size and position in the batch.
///
/// z and w are differentiable in M and q, any number of times, in reverse and forward mode: with the active set
/// a = { i : z_i > 0 } fixed, z_a = -M_aa^-1 q_a and w_b = M_ba z_a + q_b [CPS, sec. 7.4]. The gradient of an element
/// that is not solved is 0 where its incoming gradient is 0, else NaN.
///
///   M: [..., n, n], float32 or float64, any strides; n may be 0.
///   q: [..., n], of M's dtype and device. The batch dimensions of M, q and the guess broadcast; a shared M is not
///   copied.
///
/// Throws c10::Error, before any work, for other shapes, dtypes, devices or options.
LCP_API SolveResult solve(const at::Tensor& M, const at::Tensor& q, const SolveOptions& options = {});

}  // namespace lcp
