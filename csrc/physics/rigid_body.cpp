#include "lcp/physics/rigid_body.h"

#include <ATen/ATen.h>

#include "physics/stepping.h"

namespace lcp::physics {

using at::Tensor;

RigidBody RigidBody::ball(const Tensor& mass, const Tensor& radius) {
  const Tensor turning = 0.4 * mass * radius * radius;
  return {mass, at::diag_embed(vector_of({turning, turning, turning})), at::zeros({1, 3}, radius.options()),
          radius.unsqueeze(-1)};
}

RigidBody RigidBody::box(const Tensor& mass, const Tensor& size) {
  const Tensor square = size * size, signs = constants({-1, 1}, size.options());
  return {mass, at::diag_embed(mass.unsqueeze(-1) / 12 * (square.sum(-1, true) - square)),
          size.unsqueeze(-2) / 2 * at::cartesian_prod({signs, signs, signs}), at::zeros({8}, size.options())};
}

RigidBody RigidBody::ball(double mass, double radius) {
  return ball(positive_parameter("mass", mass), positive_parameter("radius", radius));
}

RigidBody RigidBody::box(double mass, const std::array<double, 3>& size) {
  Tensors edges;
  for (const double edge : size) edges.push_back(positive_parameter("size", edge));
  return box(positive_parameter("mass", mass), at::stack(edges));
}

Plane Plane::inclined(const Tensor& slope, const Tensor& height) {
  const Tensor up = slope.cos();
  return {vector_of({slope.sin(), at::zeros_like(slope), up}), height * up};
}

Plane Plane::inclined(double slope, double height) {
  return inclined(at::scalar_tensor(slope, at::kDouble), at::scalar_tensor(height, at::kDouble));
}

RigidState RigidState::at_rest(const Tensor& position) {
  const Tensor none = at::zeros_like(position);
  return {position, at::cat({at::ones_like(position.narrow(-1, 0, 1)), none}, -1), none, at::zeros_like(position)};
}

}  // namespace lcp::physics
