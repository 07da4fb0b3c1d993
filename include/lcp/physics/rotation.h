// Rotations of rigid bodies as unit quaternions (w, x, y, z), which turn vectors from the axes of the body to those of
// the world.
//
//   [SO3] Sola, Deray, Atchuthan: A micro Lie theory for state estimation in robotics, arXiv 1812.01537, 2018.
#pragma once

#include <ATen/core/Tensor.h>

#include "lcp/export.h"

namespace lcp::physics {

/// The rotation matrix [..., 3, 3] of a quaternion [..., 4], which is normalised first.
LCP_API at::Tensor rotation_matrix(const at::Tensor& quaternion);

/// The quaternion [..., 4] of the rotation by the angle |theta| about theta, [..., 3], rad: the exponential map of
/// [SO3]. It is analytic at 0, too.
LCP_API at::Tensor rotation_by(const at::Tensor& theta);

/// The unit quaternion [..., 4] of a body with the orientation `quaternion`, [..., 4], after it has turned by theta,
/// [..., 3], rad, in its own axes. Exact for a constant angular velocity.
LCP_API at::Tensor turned(const at::Tensor& quaternion, const at::Tensor& theta);

/// The quaternion [..., 4] of the rotation, in the axes of the body, from one orientation, [..., 4], to another, both
/// of unit length: conj(a) b.
LCP_API at::Tensor rotation_between(const at::Tensor& a, const at::Tensor& b);

/// The angle, [...], rad, in [0, pi], by which one orientation, [..., 4], has to turn to become the other.
LCP_API at::Tensor angle_between(const at::Tensor& a, const at::Tensor& b);

/// The angular velocity [..., 3], rad/s, of a body free of torques after the time dt, in its own axes: the implicit
/// midpoint rule for I omega' = (I omega) x omega, which conserves the kinetic energy and the size of the angular
/// momentum. Newton's method solves it to round-off where dt |omega| is below 1 rad.
///   omega: [..., 3], rad/s. inertia: [..., 3, 3], kg m^2. dt: s.
LCP_API at::Tensor gyroscopic(const at::Tensor& omega, const at::Tensor& inertia, double dt);

}  // namespace lcp::physics
