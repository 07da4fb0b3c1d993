// Rollouts of bodies on compliant ground in one call of lcp::_compliant_walk, whose derivative is one of
// lcp::_compliant_walk_adjoint.
#pragma once

#include "physics/compliant_ground.h"

namespace lcp::physics {

/// Whether a walk solves a step as lcp::solve_contact does with these options, and has the derivatives that are asked
/// for.
bool can_walk(const CompliantState& first, const at::Tensor& u, const CompliantBody& body,
              const ContactOptions& options);

/// first: [batch..., 3] each, u: [steps, batch..., 3], all of the dtype in which the results are.
CompliantSolution walk(const CompliantState& first, const at::Tensor& u, const CompliantBody& body,
                       const ContactOptions& options);

}  // namespace lcp::physics
