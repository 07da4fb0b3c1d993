// Dry friction at contacts whose motions may depend on each other, in the direct formulation.
//
//   A (v_next - v*) = J'p,   c = J v_next,   |p_i| <= limit_i,   p_i = -limit_i sign(c_i) where c_i != 0
//
// The direct formulation [Notes, 2.2] has the parts c+, c- of the contacts' velocities as its unknowns z, and unused
// friction as w. For several contacts its matrix has the inverse of W = J A^-1 J', which does not exist where J lacks
// full row rank: for two supports of a block on a line, or three of a plank. A principal pivot on the pairs of c+,
// which exchanges z and w in them, leaves an LCP that has W itself.
//
//   [Notes] Pfrommer: LCP Notes, 2019 (unpublished; docs/systems.md), sections 2.2 and 4.
//   [CPS]   Cottle, Pang, Stone: The Linear Complementarity Problem, SIAM, 2009, sections 2.3 and 3.1.
#pragma once

#include "lcp/export.h"
#include "lcp/physics/problem.h"

namespace lcp::physics {

struct DirectFrictionStep {
  at::Tensor v_next;   ///< [..., k], m/s
  at::Tensor slip;     ///< [..., r], c, m/s: exactly 0 where the friction of a contact is below its limit
  at::Tensor impulse;  ///< [..., r], p, N s: J'p is unique, p is not where rows of J depend on each other
};

/// z = (limit + p, c-), w = (c+, limit - p), n = 2 r, M = [W I; -I 0]. M is positive semidefinite for every J, and
/// (0, c-) with a large c- is feasible, so that there is a solution [CPS, 3.1.2]; v_next is unique.
///   J: [..., r, k], of any rank. inverse_mass: [..., k, k], A^-1, symmetric and positive definite, in 1/kg for a mass.
///   v_free: [..., k], v*, the velocities without friction, m/s. limit: [..., r], >= 0, N s. Batch dimensions
///   broadcast.
/// Throws c10::Error where a shape does not fit.
LCP_API Problem direct_friction_problem(const at::Tensor& J, const at::Tensor& inverse_mass, const at::Tensor& v_free,
                                        const at::Tensor& limit);

/// z, w: [..., 2 r], a solution of direct_friction_problem for the other arguments.
LCP_API DirectFrictionStep read_direct_friction(const at::Tensor& z, const at::Tensor& w, const at::Tensor& J,
                                                const at::Tensor& inverse_mass, const at::Tensor& v_free);

}  // namespace lcp::physics
