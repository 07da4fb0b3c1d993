// Where the bodies of a scene touch: gaps, normals and Jacobians of all pairs.
#pragma once

#include <vector>

#include "lcp/physics/rigid_scene.h"
#include "physics/stepping.h"

namespace lcp::physics {

/// The parts of a scene that contacts depend on, in one dtype and batch shape.
class RigidGeometry {
 public:
  RigidGeometry(const RigidScene& scene, at::ScalarType dtype);

  std::int64_t contacts() const { return static_cast<std::int64_t>(pairs_.size()); }
  std::int64_t bodies() const { return bodies_; }
  const Shape& batch() const { return batch_; }  ///< to which the parameters broadcast

  /// Which bodies each pair has, [c, B], bool.
  const at::Tensor& members() const { return members_; }

  /// Which pairs are of one collision: of the same body, and of another body or the same plane. [c, c], bool.
  const at::Tensor& collisions() const { return collisions_; }

  /// state: of a batch shape to which batch() broadcasts, in the dtype.
  RigidContacts find(const RigidState& state) const;

 private:
  // Some of the pairs.
  struct Part {
    at::Tensor gap, normal, point;  // [batch..., pairs], the others with a last dimension of 3
  };

  // centers: [batch..., p, 3], of the balls.
  Part with_planes(const at::Tensor& centers, const RigidState& state, const at::Tensor& rotation) const;
  Part with_balls(const at::Tensor& centers) const;

  std::int64_t bodies_;
  std::vector<ContactPair> pairs_;
  Shape batch_;
  at::Tensor ball_body_;         // int64, [p], of all balls
  at::Tensor centers_, radii_;   // [batch..., p, 3], [batch..., p]
  std::vector<Plane> planes_;    // of the batch shape and dtype
  at::Tensor touching_, plane_;  // int64, the ball and the plane of each pair of them
  at::Tensor first_, second_;    // int64, the balls of each pair of balls
  at::Tensor body_, other_;      // int64, [c]; the other body is 0 where there is none
  at::Tensor members_, collisions_;
  at::Tensor is_body_, is_other_;  // [c, 1, B, 1], 1 where the body is that of the pair, else 0
};

}  // namespace lcp::physics
