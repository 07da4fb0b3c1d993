// Convex compliant contact with Coulomb friction, as a differentiable, batched operator.
//
//   v = argmin |v - v_free|_A^2 / 2 + |P(y)|_R^2 / 2,   y = R^-1 (v_hat - J v),   gamma = P(y)
//
// where |x|_B^2 = x' B x, and P projects, in the norm of R, on the friction cones { |gamma_t| <= mu gamma_n } of all
// contacts. The minimum is that of a strictly convex function: there is always one, whatever the contacts are, and it
// moves with all of the inputs. docs/compliant_contact.md says what the model is worth, and what it is not.
//
//   [CPH] Castro, Permenter, Han: An unconstrained convex formulation of compliant contact, IEEE T-RO 39, 2023.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>

#include "lcp/export.h"
#include "lcp/status.h"

namespace lcp {

struct ContactOptions {
  /// Solved is |D g| <= tolerance * max(|D A v|, |D J' gamma|) with g = A (v - v_free) - J' gamma, D = diag(A)^-1/2,
  /// for the v found in double precision, which the result is rounded from; or |D g| no more than what rounding v
  /// changes it by, where R is so small that this is more. Absent: 1e-10.
  std::optional<double> tolerance;

  /// Newton steps that one element of the batch may take. Absent: 1000.
  std::optional<std::int64_t> max_iterations;

  /// [..., n], of A's dtype and device: where to begin, as the v of the last time step. It changes what is returned
  /// within the tolerance. Absent, or where it is not finite: v_free.
  std::optional<at::Tensor> guess;
};

struct ContactResult {
  at::Tensor v;           ///< [..., n], NaN where not solved
  at::Tensor gamma;       ///< [..., 3 c], impulses (t1, t2, n) of each contact, NaN where not solved
  at::Tensor status;      ///< [...], int8; kSolved, kNotFound (a step changes nothing), kPivotLimit or kBadInput
  at::Tensor iterations;  ///< [...], int64, Newton steps
};

/// Solves one problem for each element of a batch, by Newton's method with an exact line search [CPH, sec. V], and from
/// far away by softer problems, those of a larger R, first. Elements never touch each other, and the same inputs give
/// the same bits for any number of threads, batch size and position in the batch. Where most of A and J is 0, its
/// factorisations are sparse.
///
///   A: [..., n, n], kg in the coordinates of v: symmetric and positive definite, float32 or float64, any strides; n
///   may be 0. v_free: [..., n], m/s, what v would be without contact. J: [..., 3 c, n], of each contact the rows of
///   (t1, t2, n), so that J v is its velocity; c may be 0. v_hat: [..., 3 c], m/s, and R: [..., 3 c], 1/kg, > 0, the
///   compliance, the same for t1 and t2; both as lcp::contact_parameters has them. mu: [..., c], >= 0. The batch
///   dimensions of all of them broadcast.
///
/// What is to be equal, A and A', and R of both tangents, may differ by 1e-3 of the largest; the mean counts. What
/// differs by more is a bad input, as a number that is not finite or out of its range, and an A that is not positive
/// definite.
///
/// v and gamma are differentiable in all six, any number of times, in reverse and forward mode, by the implicit
/// function theorem. On the edge of two of the regions stick, slide and none, the derivative is that of stick before
/// that of slide, and of none before both. The gradient of an element that is not solved is 0 where its incoming
/// gradient is 0, else NaN.
///
/// Throws c10::Error, before any work, for shapes, dtypes, devices or options that are none of these.
LCP_API ContactResult solve_contact(const at::Tensor& A, const at::Tensor& v_free, const at::Tensor& J,
                                    const at::Tensor& v_hat, const at::Tensor& R, const at::Tensor& mu,
                                    const ContactOptions& options = {});

}  // namespace lcp
