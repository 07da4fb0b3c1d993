// The dual of the problem that lcp::solve_contact solves.
//
//   primal:  min over v and sigma of |v - v_free|_A^2 / 2 + |sigma|_R^2 / 2,   J v - v_hat + R sigma in C*
//   dual:    min over gamma in C of gamma' H gamma / 2 + r' gamma,   H = J A^-1 J' + R,   r = J v_free - v_hat
//
// C is the product of the friction cones { |gamma_t| <= mu gamma_n } and C* its dual cone, { mu |s_t| <= s_n }. Both
// problems are strictly convex, and the least value of one is minus the least value of the other. With the dual
// minimiser gamma, the primal minimisers are v = v_free + A^-1 J' gamma and sigma = gamma: the slack that compliance
// allows is the impulse itself. lcp::solve_contact has eliminated sigma and returns v and gamma.
//
//   [CPH] Castro, Permenter, Han: An unconstrained convex formulation of compliant contact, IEEE T-RO 39, 2023, sec.
//   IV.
#pragma once

#include <ATen/core/Tensor.h>

#include "lcp/export.h"

namespace lcp {

struct ContactDual {
  at::Tensor H;  ///< [..., 3 c, 3 c], 1/kg: the Delassus operator J A^-1 J' plus the compliance
  at::Tensor r;  ///< [..., 3 c], m/s
};

/// H and r of the problem with these arguments of lcp::solve_contact. gamma is the dual minimiser if gamma is in C, H
/// gamma + r in C*, and gamma' (H gamma + r) = 0.
///
/// Differentiable in all five, any number of times. H is NaN where A is not positive definite. Throws c10::Error for
/// other shapes, dtypes or devices.
LCP_API ContactDual contact_dual(const at::Tensor& A, const at::Tensor& v_free, const at::Tensor& J,
                                 const at::Tensor& v_hat, const at::Tensor& R);

}  // namespace lcp
