// Equality constraints for lcp::solve_contact, such as joints, whose impulses have either sign.
#pragma once

#include <ATen/core/Tensor.h>

#include "lcp/export.h"

namespace lcp {

/// The quadratic form |v - v_free|_A^2 / 2, up to a constant.
struct FreeMotion {
  at::Tensor A;       ///< [..., n, n]
  at::Tensor v_free;  ///< [..., n]
};

/// Adds the cost |J v - v_hat|^2 / 2, in the norm of R^-1, of e constraints J v = v_hat with the compliance R. Their
/// impulses R^-1 (v_hat - J v) have no bounds. The sum has the A and v_free
///
///   A + J' R^-1 J,   (A + J' R^-1 J)^-1 (A v_free + J' R^-1 v_hat)
///
///   A: [..., n, n] and v_free: [..., n], as in lcp::solve_contact. J: [..., e, n]; v_hat and R: [..., e], R > 0.
///   The batch dimensions broadcast.
///
/// Differentiable in all five, any number of times. v_free is NaN where the sum is not positive definite. Throws
/// c10::Error for other shapes, dtypes or devices.
LCP_API FreeMotion add_equality(const at::Tensor& A, const at::Tensor& v_free, const at::Tensor& J,
                                const at::Tensor& v_hat, const at::Tensor& R);

/// The impulses R^-1 (v_hat - J v), [..., e], N s, of these constraints. v: [..., n], m/s, is the velocity that
/// lcp::solve_contact found with the sum, or its v_free if there are no contacts. The impulses act by J', beside those
/// of contacts: A (v - v_free) = J' gamma + J_c' gamma_c with the A and v_free that were given to add_equality. A
/// rounding error of v becomes an error of gamma that is larger by the factor J / R.
///
/// Differentiable in all four, any number of times. Throws c10::Error for other shapes, dtypes or devices.
LCP_API at::Tensor equality_impulses(const at::Tensor& J, const at::Tensor& v_hat, const at::Tensor& R,
                                     const at::Tensor& v);

}  // namespace lcp
