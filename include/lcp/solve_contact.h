// Convex compliant contact with Coulomb friction, as a differentiable, batched operator.
//
//   v = argmin |v - v_free|_A^2 / 2 + |P(y)|_R^2 / 2,   y = R^-1 (v_hat - J v),   gamma = P(y)
//
// where |x|_B^2 = x' B x, and P projects, in the norm of R, on the friction cones { |gamma_t| <= mu gamma_n } of all
// contacts. The objective is strictly convex, so that there is exactly one solution for all contacts; this solution
// depends continuously on every input. docs/compliant_contact.md discusses the model and its artefacts.
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
  /// [...], int64, on A's device: the number of contacts of each element; they are the first ones of the c. Each
  /// element gets the bits, also of its gradient, that it would get alone with its own contacts. Inputs of contacts
  /// beyond them are not read; gamma and the gradients are 0 there. lcp::pad makes such batches. Absent: c.
  std::optional<at::Tensor> sizes = {};

  /// An element is solved where one of these conditions holds in double precision, before v is rounded to the dtype. In
  /// them, g = A (v - v_free) - J' gamma and D = diag(A)^-1/2.
  ///   - |D g| <= tolerance * change, with change = max(|D A (v - v_free)|, |D J' gamma|);
  ///   - |D g| is within the bound on the rounding errors of A (v - v_free);
  ///   - |D g| is within the bound on its own rounding errors, and that is at most 1e-7 of change.
  /// The change is the same for all observers; the rounding errors grow with the speed of v. If the rounding errors of
  /// g are larger than 1e-7 of change, or if R < 1e-5 w, rounding errors of v would change gamma too much. Then g is
  /// that of the returned gamma, and R y = v_hat - J v holds up to rounding errors. Here w is the mean of the contact's
  /// diagonal entries of J A^-1 J'. Absent: 1e-10.
  std::optional<double> tolerance = {};

  /// Newton steps that one element of the batch may take. Absent: 1000.
  std::optional<std::int64_t> max_iterations = {};

  /// [..., n], m/s, of A's dtype and device: the start of the iteration, for example v of the last time step. It
  /// changes the result within the tolerance only. Absent, or where it is not finite: v_free.
  std::optional<at::Tensor> guess = {};
};

struct ContactResult {
  at::Tensor v;           ///< [..., n], m/s; NaN where not solved
  at::Tensor gamma;       ///< [..., 3 c], N s, impulses (t1, t2, n) of each contact; NaN where not solved
  at::Tensor status;      ///< [...], int8: kSolved, kNotFound (rounding errors are too large), kPivotLimit or kBadInput
  at::Tensor iterations;  ///< [...], int64, Newton steps
};

/// Solves one problem for each element of a batch by Newton's method with an exact line search [CPH, sec. V]. Far from
/// the solution it solves problems with a larger R first. Elements are independent: the same inputs give the same bits
/// for any number of threads, batch size and position in the batch. If most entries of A and J are 0, the
/// factorisations are sparse.
///
///   A: [..., n, n], kg in the coordinates of v: symmetric and positive definite, float32 or float64, any strides; n
///   may be 0. v_free: [..., n], m/s, the velocity without contact. J: [..., 3 c, n], of each contact the rows of
///   (t1, t2, n), so that J v is its velocity; c may be 0. v_hat: [..., 3 c], m/s, and R: [..., 3 c], 1/kg, > 0, the
///   compliance, the same for t1 and t2; both as lcp::contact_parameters computes them. mu: [..., c], >= 0. The batch
///   dimensions of all of them broadcast.
///
/// If some v has J v - v_hat in the dual cones { mu |s_t| <= s_n } of all contacts, as v = 0 has where v_hat = 0, small
/// R are no obstacle: of 128 000 random problems with R from 1e-15 w to w all were solved, of 56 000 with smaller R,
/// down to 1e-300, all but 48. If no v has this, because contacts are pressed against each other, gamma grows as 1 / R;
/// then the status is kNotFound for R below about 1e-12 w, after at most 300 Newton steps.
///
/// A and A' may differ by 1e-3 of the largest entry, and so may R of the two tangents; their means are used. The status
/// is kBadInput for larger differences, for numbers that are not finite or out of their range, and where A is not
/// positive definite.
///
/// v and gamma are differentiable in all six, any number of times, in reverse and forward mode, by the implicit
/// function theorem. On the boundary of separate and another region, the derivative is that of separate; on the
/// boundary of stick and slide, that of stick. Where R is small, rounding errors change the gradient by up to about
/// 1e-15 w / R in parts. The gradient of an element that is not solved is 0 where its incoming gradient is 0, else NaN.
///
/// Throws c10::Error, before any work, for other shapes, dtypes, devices or options.
LCP_API ContactResult solve_contact(const at::Tensor& A, const at::Tensor& v_free, const at::Tensor& J,
                                    const at::Tensor& v_hat, const at::Tensor& R, const at::Tensor& mu,
                                    const ContactOptions& options = {});

}  // namespace lcp
