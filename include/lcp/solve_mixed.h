// The mixed linear complementarity problem: equations with unknowns of any sign beside the complementary pairs.
//
//   0 = A x + B z + p,   w = C x + M z + q,   0 <= z  perp  w >= 0
//
//   [CPS] Cottle, Pang, Stone: The Linear Complementarity Problem, SIAM, 2009, sec. 1.2.
#pragma once

#include <ATen/core/Tensor.h>

#include "lcp/export.h"
#include "lcp/solve.h"

namespace lcp {

struct MixedResult {
  at::Tensor x;       ///< [..., k]
  at::Tensor z;       ///< [..., n]
  at::Tensor w;       ///< [..., n]
  at::Tensor status;  ///< [...], int8; the values of lcp::Status
};

/// Solves one mixed LCP for each element of a batch. The statuses, the independence of the elements and the derivatives
/// of any order are those of lcp::solve; the equations are rows that are always active. A may be singular, as long as
/// the mixed LCP has a solution, and rows may be in units of their own.
///
///   A: [..., k, k], B: [..., k, n], C: [..., n, k], M: [..., n, n], float32 or float64, any strides; k, n may be 0.
///   p: [..., k], q: [..., n], of A's dtype and device. The batch dimensions of all of them broadcast.
///   options.guess: [..., n], for z. options.max_pivots bounds each of the LCPs that docs/solvers.md describes.
///
/// kSolved: |A x + B z + p| and r(z) are within tolerance * max(|p|, |q|), checked on the returned x and z. If the
/// largest entries of rows or columns of [A B; C M] differ by more than a factor of 64, powers of two bring them to
/// like size. The rows are divided by these powers for the check.
/// kInfeasible: no x and z >= 0 have A x + B z + p = 0 and C x + M z + q >= 0.
///
/// Throws c10::Error, before any work, for other shapes, dtypes, devices or options.
LCP_API MixedResult solve_mixed(const at::Tensor& A, const at::Tensor& B, const at::Tensor& C, const at::Tensor& M,
                                const at::Tensor& p, const at::Tensor& q, const SolveOptions& options = {});

}  // namespace lcp
