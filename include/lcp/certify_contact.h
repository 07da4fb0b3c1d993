// What is known of a solution of lcp::solve_contact, and of the derivative there.
#pragma once

#include <ATen/core/Tensor.h>

#include "lcp/export.h"

namespace lcp {

/// Per element, [...]. NaN where the problem is a bad input, or v not finite.
struct ContactCertificate {
  at::Tensor residual;  ///< |D g| / max(|D A v|, |D J' gamma|), as in ContactOptions

  /// From y_k to the nearest edge of two of the regions stick, slide and none, in the norm of R, over that of
  /// R^-1 (|v_hat| + |J| |v|)_k; the least of all contacts. In [0, 1], whatever the units; infinity without contacts.
  at::Tensor margin;

  at::Tensor condition;  ///< of D H D in the 2-norm, with the Hessian H at v, that the derivative solves with
};

/// Certifies v: [..., n], a solution of the problem that the other arguments make, as in lcp::solve_contact, or what is
/// taken for one. Nothing is differentiable. Throws c10::Error for shapes, dtypes or devices that do not fit.
LCP_API ContactCertificate certify_contact(const at::Tensor& A, const at::Tensor& v_free, const at::Tensor& J,
                                           const at::Tensor& v_hat, const at::Tensor& R, const at::Tensor& mu,
                                           const at::Tensor& v);

}  // namespace lcp
