// The linear complementarity problem as a differentiable, batched operator.
//
//   w = M z + q,   0 <= z  perp  w >= 0
//
//   [CPS] Cottle, Pang, Stone: The Linear Complementarity Problem, SIAM, 2009.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <string>

#include "lcp/export.h"
#include "lcp/status.h"

namespace lcp {

struct SolveOptions {
  /// "auto": Lemke's method, verified, with retries; docs/notation.md says what is believed of it.
  /// "lemke": one pass of Lemke's method [CPS, alg. 4.4.5] with the covering vector d = e.
  std::string method = "auto";

  /// What the gradient takes z_i = w_i = 0 for. "inactive": z_i stays 0. No other rule is available yet.
  std::string ties = "inactive";

  /// Smoothing of the gradient along the central path z_i w_i = kappa. Only 0 (none) is available yet.
  double kappa = 0.0;

  /// r(z) = max_i |min(z_i, (M z + q)_i)| <= tolerance * max_i |q_i| is what "solved" means.
  /// Absent: 1e-9 in float64, 1e-4 in float32.
  std::optional<double> tolerance;

  /// Pivots that one element of the batch may spend. Absent: 30 n for each attempt.
  std::optional<std::int64_t> max_pivots;

  /// A proposal of the active set. Not available yet.
  std::optional<at::Tensor> guess;
};

struct SolveResult {
  at::Tensor z;       ///< [..., n]
  at::Tensor w;       ///< [..., n]
  at::Tensor status;  ///< [...], int8; the values of lcp::Status
};

/// Solves one LCP for each element of a batch. Elements never touch each other, and the same inputs give the same
/// bits for any number of threads, batch size and position in the batch.
///
/// z and w are differentiable in M and q, any number of times, in reverse and forward mode: with the active set
/// a = { i : z_i > 0 } fixed, z_a = -M_aa^-1 q_a and w_b = M_ba z_a + q_b [CPS, sec. 7.4]. The gradient of an element
/// that is not solved is 0 where its incoming gradient is 0, else NaN.
///
///   M: [..., n, n], float32 or float64, any strides; n may be 0.
///   q: [..., n], of M's dtype and device. The batch dimensions of M and q broadcast; a shared M is not copied.
///
/// Throws c10::Error, before any work, for shapes, dtypes, devices or options that are none of these.
LCP_API SolveResult solve(const at::Tensor& M, const at::Tensor& q, const SolveOptions& options = {});

}  // namespace lcp
