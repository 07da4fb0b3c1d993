// Scenes of rigid bodies as lists of tensors, and their types in the schemas of operators.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <tuple>
#include <vector>

#include "lcp/physics/rigid_scene.h"
#include "ops/composite.h"

namespace lcp::physics {

LCP_MEMBERS(RigidState, position, orientation, velocity, angular_velocity)
LCP_ENUMERATORS(RigidFormulation, "exact_cone", "polyhedral", "compliant")
LCP_MEMBERS_BY(
    RigidOptions,
    "formulation, substeps, bounce_threshold, stabilization, directions, angle, kappa, ties, tolerance, sigma, beta",
    [](auto& x) {
      return std::tie(x.formulation, x.substeps, x.bounce_threshold, x.stabilization, x.directions.count,
                      x.directions.angle, x.kappa, x.ties, x.tolerance, x.regularization.sigma, x.regularization.beta);
    })

/// A scene from the tensors of a list that are behind the `first` ones: for each body its mass, inertia, centers, radii
/// and drag, for each plane its normal and offset, gravity, mu, restitution and, where there are five behind the
/// planes, stiffness and dissipation. Plane k is fixed to plane_bodies[k] and can touch the next touch_counts[k] of the
/// bodies that `touches` lists.
RigidScene scene_of_list(at::TensorList x, std::int64_t first, std::int64_t bodies, at::IntArrayRef plane_bodies,
                         at::IntArrayRef touches, at::IntArrayRef touch_counts, double dt);

/// The tensors of a scene in this order. A drag that is not defined is 0.
std::vector<at::Tensor> list_of_scene(const RigidScene& scene);

}  // namespace lcp::physics
