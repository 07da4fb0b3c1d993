// Rigid bodies in three dimensions: their inertia, the shapes by which they touch others, and their state.
//
// A body touches by balls that are fixed to it; a ball of radius 0 is a point, such as the corner of a box. Balls touch
// balls of other bodies, and planes that are fixed in the world or to another body. A plane is infinite: the corners
// of a box rest on the top of another even beyond its edge. Bodies of other shapes need a collision detection, whose
// contacts lcp::solve_friction and lcp::solve_contact take as they are.
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <cstdint>
#include <vector>

#include "lcp/export.h"

namespace lcp::physics {

/// Vectors are in the axes of the body and begin at its centre of mass.
struct LCP_API RigidBody {
  at::Tensor mass;       ///< [...], kg, > 0
  at::Tensor inertia;    ///< [..., 3, 3], kg m^2, about the centre of mass: symmetric and positive definite
  at::Tensor centers;    ///< [..., p, 3], m, of the balls; p may be 0
  at::Tensor radii;      ///< [..., p], m, >= 0
  at::Tensor drag = {};  ///< [...], kg/s, >= 0, of the force -drag v on the centre of mass; undefined: none

  /// A solid ball, and a solid box that touches by its corners, of even density. Differentiable in the arguments.
  ///   mass: [...], kg. radius: [...], m. size: [..., 3], m, the lengths of the edges.
  static RigidBody ball(const at::Tensor& mass, const at::Tensor& radius);
  static RigidBody box(const at::Tensor& mass, const at::Tensor& size);

  /// Bodies of float64 numbers. Throws c10::Error where a number is not > 0.
  static RigidBody ball(double mass, double radius);
  static RigidBody box(double mass, const std::array<double, 3>& size);
};

/// The plane normal.x = offset. It bounds a body, or the ground, which is on the side opposite to the normal.
struct LCP_API Plane {
  at::Tensor normal;                       ///< [..., 3], of length 1, to 4 digits
  at::Tensor offset;                       ///< [...], m
  std::int64_t body = kWorld;              ///< the body that it is fixed to, in whose axes x is
  std::vector<std::int64_t> touches = {};  ///< the bodies that it can touch; if empty, all others

  static constexpr std::int64_t kWorld = -1;

  /// A fixed plane through the point `height` of the z axis. Its normal is the z axis turned about the y axis by
  /// `slope`, rad, so that the plane descends along x. Differentiable in both.
  static Plane inclined(const at::Tensor& slope, const at::Tensor& height);
  static Plane inclined(double slope = 0, double height = 0);
};

/// The state of B bodies.
struct LCP_API RigidState {
  at::Tensor position;          ///< [..., B, 3], m, of the centres of mass
  at::Tensor orientation;       ///< [..., B, 4], quaternions, see rotation.h; they need not have unit length
  at::Tensor velocity;          ///< [..., B, 3], m/s
  at::Tensor angular_velocity;  ///< [..., B, 3], rad/s, in the axes of each body

  /// B bodies at rest at these positions, with the axes of the world.
  static RigidState at_rest(const at::Tensor& position);
};

}  // namespace lcp::physics
