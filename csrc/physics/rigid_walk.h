// Rollouts of rigid bodies in one call of lcp::_rigid_walk, whose derivative is one of lcp::_rigid_walk_adjoint.
#pragma once

#include <ATen/core/Tensor.h>

#include "lcp/physics/rigid_scene.h"

namespace lcp::physics {

/// The ends of all steps, [steps, batch..., ...], NaN from the first on that was not solved.
struct RigidSteps {
  RigidState next;
  at::Tensor gamma;       ///< [steps, ..., 3 c]
  at::Tensor status;      ///< [steps, ...], int8
  at::Tensor iterations;  ///< [steps, ...], int64
};

/// The same in operators of tensors: what a walk is to compute, and how higher derivatives are found.
///   u: [steps, ..., B, 6]; options.substeps does not count.
RigidSteps step_by_step(const RigidState& state, const at::Tensor& u, const RigidScene& scene,
                        const RigidOptions& options);

/// Whether a walk has the derivatives that are asked for: not smoothed, in reverse mode.
bool can_walk(const RigidState& state, const at::Tensor& u, const RigidScene& scene, const RigidOptions& options);

/// The arguments must fit, as those of `simulate`.
RigidSteps walk(const RigidState& state, const at::Tensor& u, const RigidScene& scene, const RigidOptions& options);

}  // namespace lcp::physics
