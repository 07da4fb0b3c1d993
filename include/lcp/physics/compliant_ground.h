// Parameters, states and results of bodies with three velocities on compliant ground. lcp::solve_contact steps them in
// time:
//
//   A (v_next - v) = dt f + J' gamma,   x_next = x + dt v_next
//
// with the impulses gamma of springs and dampers under the ground, and of regularized Coulomb friction. The model is a
// convex relaxation with two artefacts, which docs/compliant_contact.md measures: a body that sticks creeps, and one
// that slides hovers by mu (dt + tau) |v_t| above its equilibrium.
//
//   [CPH] Castro, Permenter, Han: An unconstrained convex formulation of compliant contact, IEEE T-RO 39, 2023.
#pragma once

#include <ATen/core/Tensor.h>

#include "lcp/contact_parameters.h"
#include "lcp/export.h"
#include "lcp/physics/problem.h"
#include "lcp/solve_contact.h"

namespace lcp::physics {

struct LCP_API CompliantGround {
  at::Tensor mu;           ///< friction coefficient, >= 0
  at::Tensor stiffness;    ///< N/m, > 0, of each point of contact
  at::Tensor dissipation;  ///< s, >= 0: the damping over the stiffness
  RegularizationOptions regularization = {};

  /// Float64 parameters [] of the given values. Throws c10::Error where one is out of its range.
  static CompliantGround of(double mu, double stiffness, double dissipation,
                            const RegularizationOptions& regularization = {});
};

/// Position and velocity of a body, each [..., 3], in the coordinates that the header of the body defines.
struct CompliantState {
  at::Tensor position;
  at::Tensor velocity;
};

/// The arguments of lcp::solve_contact.
struct CompliantProblem {
  at::Tensor A, v_free, J, v_hat, R, mu;
};

/// The result of a step; NaN where the status is not 0.
struct CompliantStep {
  CompliantState next;
  at::Tensor gamma;  ///< [..., 3 c], N s, of each contact along its two tangents and the normal
};

struct CompliantSolution {
  CompliantStep step;
  at::Tensor status;      ///< [...], int8, see lcp::Status
  at::Tensor iterations;  ///< [...], int64, of Newton's method, which begins at the velocity before the step
};

}  // namespace lcp::physics
