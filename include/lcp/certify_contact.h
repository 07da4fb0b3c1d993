// The accuracy of a solution of lcp::solve_contact, and how well its derivative is defined.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>

#include "lcp/export.h"

namespace lcp {

/// One number of each kind per element of the batch, [...]. All are NaN where lcp::solve_contact would report kBadInput
/// and where v is not finite.
struct ContactCertificate {
  /// |D g| / max(|D A (v - v_free)|, |D J' gamma|), as in ContactOptions, with gamma = P(R^-1 (v_hat - J v)). It is 0
  /// where |D g| is within the rounding errors of A (v - v_free). The rounding of v changes it by about
  /// 1e-16 (w / R) |v| / |v - v_free| in double precision, with the diagonal w of J A^-1 J'.
  at::Tensor residual;

  /// The smallest relative distance of a contact to the boundary of two of the regions stick, slide and separate, where
  /// the derivative jumps. The distance of y_k to that boundary, in the norm of R and less its rounding errors, is
  /// divided by the norm of y_k or of the largest impulse of a contact, whichever is larger. The margin is in [0, 1],
  /// the same in all units and, but for rounding errors, for all observers. It is infinity without contacts.
  at::Tensor margin;

  /// The condition number of D H D in the 2-norm, where H is the Hessian at v and D = diag(A)^-1/2.
  at::Tensor condition;
};

/// Certifies v: [..., n], m/s, as a solution, whichever method found it. The other arguments define the problem as in
/// lcp::solve_contact, with the sizes of ContactOptions. The result is not differentiable. Throws c10::Error for
/// shapes, dtypes or devices that do not fit.
LCP_API ContactCertificate certify_contact(const at::Tensor& A, const at::Tensor& v_free, const at::Tensor& J,
                                           const at::Tensor& v_hat, const at::Tensor& R, const at::Tensor& mu,
                                           const at::Tensor& v, const std::optional<at::Tensor>& sizes = {});

}  // namespace lcp
