// Conversions between velocities at the times of samples and the velocities of a rollout of rigid bodies.
//
// The velocities of a rollout are those of the middles of its steps (rigid_scene.h): the velocity of a state is older
// than its positions by dt / 2. A rollout that begins with a velocity measured at the time of the position has an error
// of a dt / 2 in it, where a is the acceleration. A comparison of the two velocities has this error, too. These
// functions turn one velocity into the other, to second order in dt.
#pragma once

#include "lcp/export.h"
#include "lcp/physics/rigid_scene.h"

namespace lcp::physics {

/// Turns a state whose velocities were measured at the time of its positions into one that begins a rollout: the
/// velocities become those of dt / 2 earlier.
///   state: velocities at the time of the positions. u: [..., B, 6], N and N m, the forces at that time.
/// Returns a state of the batch shape of state, u and scene. dt is that of the scene, which is one substep. The
/// acceleration is caused by gravity, forces, friction and contacts at rest, but by no impact: a body that hits another
/// at this time, or within the next step, has the velocity before the impact. Penetrations are not removed.
/// Differentiable as `step`, which it calls four times. NaN where one of these steps is not solved. Throws c10::Error
/// where a shape or an option does not fit.
LCP_API RigidState at_mid_steps(const RigidState& state, const at::Tensor& u, const RigidScene& scene,
                                const RigidOptions& options = {});

/// Turns a state that a rollout returned into one whose velocities are those at the time of its positions: the inverse
/// of at_mid_steps. A whole rollout, `next` [rows, ...] with u [rows, ..., B, 6], is one batch. NaN and errors as
/// there.
LCP_API RigidState at_samples(const RigidState& state, const at::Tensor& u, const RigidScene& scene,
                              const RigidOptions& options = {});

}  // namespace lcp::physics
