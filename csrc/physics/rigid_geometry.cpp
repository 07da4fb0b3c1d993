#include "physics/rigid_geometry.h"

#include <ATen/ATen.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <algorithm>

#include "lcp/physics/rotation.h"

namespace lcp::physics {
namespace {

using at::Tensor;
using Other = ContactPair::Other;

std::int64_t balls_of(const RigidBody& body) { return body.radii.size(-1); }

// Constants to torch.func, under which at::tensor cannot make others.
Tensor indices(const std::vector<std::int64_t>& values) {
  const c10::impl::ExcludeDispatchKeyGuard guard(c10::DispatchKeySet(
      {c10::DispatchKey::FuncTorchDynamicLayerFrontMode, c10::DispatchKey::FuncTorchDynamicLayerBackMode}));
  return at::tensor(values, at::kLong);
}

// Unit vectors t1, t2 with t1 x t2 = n for unit vectors n, [..., 3]: [..., 3, 3], the rows (t1, t2, n) [Duff et al.:
// Building an orthonormal basis, revisited, Journal of Computer Graphics Techniques 6, 2017].
Tensor frames(const Tensor& normal) {
  const Tensor x = normal.select(-1, 0), y = normal.select(-1, 1), z = normal.select(-1, 2);
  const Tensor sign = at::where(z < 0, -1, at::ones_like(z)), a = -1 / (sign + z), b = x * y * a;
  return matrix_of(
      {vector_of({1 + sign * x * x * a, sign * b, -sign * x}), vector_of({b, sign + y * y * a, -y}), normal});
}

// [..., 3, 6]: the velocities along the rows of `frame`, [..., 3, 3], of the point of a body with this arm, [..., 3].
Tensor point_jacobian(const Tensor& frame, const Tensor& arm, const Tensor& rotation) {
  const Tensor local_frame = (frame.unsqueeze(-1) * rotation.unsqueeze(-3)).sum(-2);
  const Tensor local_arm = matvec(rotation.mT(), arm);
  return at::cat({frame, cross_product(local_arm.unsqueeze(-2), local_frame)}, -1);
}

}  // namespace

std::vector<ContactPair> contact_pairs(const RigidScene& scene) {
  std::vector<ContactPair> pairs;
  const auto bodies = static_cast<std::int64_t>(scene.bodies.size());
  for (std::size_t h = 0; h < scene.planes.size(); ++h) {
    const Plane& plane = scene.planes[h];
    for (std::int64_t a = 0; a < bodies; ++a) {
      const auto& touches = plane.touches;
      const bool is_touched = touches.empty() || std::find(touches.begin(), touches.end(), a) != touches.end();
      if (a == plane.body || !is_touched) continue;
      for (std::int64_t k = 0; k < balls_of(scene.bodies[a]); ++k) {
        pairs.push_back({a, k, Other::kPlane, plane.body, static_cast<std::int64_t>(h)});
      }
    }
  }
  if (bodies == 1) return pairs;  // Tracing cannot read the numbers below.
  std::vector<std::vector<bool>> is_point;
  for (const RigidBody& body : scene.bodies) {
    std::vector<bool>& of_body = is_point.emplace_back();
    for (std::int64_t k = 0; k < balls_of(body); ++k) {
      of_body.push_back((without_transforms(body.radii.select(-1, k)) == 0).all().item<bool>());
    }
  }
  for (std::int64_t a = 0; a < bodies; ++a) {
    for (std::int64_t b = a + 1; b < bodies; ++b) {
      for (std::int64_t k = 0; k < balls_of(scene.bodies[a]); ++k) {
        for (std::int64_t l = 0; l < balls_of(scene.bodies[b]); ++l) {
          if (!is_point[a][k] || !is_point[b][l]) pairs.push_back({a, k, Other::kBall, b, l});
        }
      }
    }
  }
  return pairs;
}

RigidGeometry::RigidGeometry(const RigidScene& scene, at::ScalarType dtype)
    : bodies_(static_cast<std::int64_t>(scene.bodies.size())), pairs_(contact_pairs(scene)), planes_(scene.planes) {
  for (const RigidBody& body : scene.bodies) {
    batch_ = common_shape({batch_, leading(body.centers, 2), leading(body.radii)});
  }
  for (const Plane& plane : planes_) batch_ = common_shape({batch_, leading(plane.normal), plane.offset.sizes()});
  const auto whole = [&](const Tensor& x, std::initializer_list<std::int64_t> last) {
    return expanded(x.to(dtype), batch_, last);
  };
  for (Plane& plane : planes_) {
    plane.normal = whole(plane.normal, {3});
    plane.offset = whole(plane.offset, {});
  }
  std::vector<std::int64_t> ball_body, first_of_body;
  Tensors centers, radii;
  for (std::int64_t b = 0; b < bodies_; ++b) {
    const RigidBody& body = scene.bodies[b];
    first_of_body.push_back(static_cast<std::int64_t>(ball_body.size()));
    ball_body.insert(ball_body.end(), balls_of(body), b);
    centers.push_back(whole(body.centers, {balls_of(body), 3}));
    radii.push_back(whole(body.radii, {balls_of(body)}));
  }
  ball_body_ = indices(ball_body);
  centers_ = at::cat(centers, -2);
  radii_ = at::cat(radii, -1);

  std::vector<std::int64_t> touching, plane, first, second, of, other;
  is_body_ = at::zeros({contacts(), 1, bodies_, 1}, at::TensorOptions(dtype));
  is_other_ = at::zeros_like(is_body_);
  for (std::int64_t k = 0; k < contacts(); ++k) {
    const ContactPair& pair = pairs_[k];
    const std::int64_t ball = first_of_body[pair.body] + pair.ball;
    if (pair.other == Other::kPlane) {
      touching.push_back(ball);
      plane.push_back(pair.index);
    } else {
      first.push_back(ball);
      second.push_back(first_of_body[pair.other_body] + pair.index);
    }
    of.push_back(pair.body);
    other.push_back(std::max<std::int64_t>(pair.other_body, 0));
    is_body_[k][0][pair.body][0] = 1;
    if (pair.other_body != Plane::kWorld) is_other_[k][0][pair.other_body][0] = 1;
  }
  members_ = ((is_body_ + is_other_) > 0).squeeze(-1).squeeze(1);
  collisions_ = at::zeros({contacts(), contacts()}, at::kBool);
  for (std::int64_t k = 0; k < contacts(); ++k) {
    for (std::int64_t l = 0; l < contacts(); ++l) {
      const ContactPair &a = pairs_[k], &b = pairs_[l];
      const bool same = a.other == Other::kBall || a.index == b.index;
      if (a.body == b.body && a.other_body == b.other_body && a.other == b.other && same) collisions_[k][l] = true;
    }
  }
  touching_ = indices(touching);
  plane_ = indices(plane);
  first_ = indices(first);
  second_ = indices(second);
  body_ = indices(of);
  other_ = indices(other);
}

RigidGeometry::Part RigidGeometry::with_planes(const Tensor& centers, const RigidState& state,
                                               const Tensor& rotation) const {
  Tensors normals, offsets;
  for (const Plane& plane : planes_) {
    if (plane.body == Plane::kWorld) {
      normals.push_back(plane.normal.expand_as(state.position.select(-2, 0)));
      offsets.push_back(plane.offset.expand_as(normals.back().select(-1, 0)));
    } else {
      normals.push_back(matvec(rotation.select(-3, plane.body), plane.normal));
      offsets.push_back(plane.offset + (normals.back() * state.position.select(-2, plane.body)).sum(-1));
    }
  }
  const Tensor normal = at::stack(normals, -2).index_select(-2, plane_);
  const Tensor center = centers.index_select(-2, touching_), radius = radii_.index_select(-1, touching_);
  const Tensor gap = (normal * center).sum(-1) - at::stack(offsets, -1).index_select(-1, plane_) - radius;
  return {gap, normal, center - radius.unsqueeze(-1) * normal};
}

RigidGeometry::Part RigidGeometry::with_balls(const Tensor& centers) const {
  const Tensor first = centers.index_select(-2, first_), between = first - centers.index_select(-2, second_);
  const Tensor square = between.square().sum(-1, true), apart = square != 0;
  const Tensor distance = at::where(apart, square, 1).sqrt();
  // Balls with one centre are pushed apart along z.
  const Tensor up = constants({0, 0, 1}, between.options()), normal = at::where(apart, between / distance, up);
  const Tensor radius = radii_.index_select(-1, first_);
  const Tensor gap = at::where(apart, distance, 0).squeeze(-1) - radius - radii_.index_select(-1, second_);
  return {gap, normal, first - (radius + gap / 2).unsqueeze(-1) * normal};
}

RigidContacts RigidGeometry::find(const RigidState& state) const {
  const Shape batch = common_shape({batch_, leading(state.position, 2)});
  const Tensor rotation = rotation_matrix(state.orientation);
  const auto of_ball = [&](const Tensor& x, std::int64_t dim) { return x.index_select(dim, ball_body_); };
  const Tensor centers = of_ball(state.position, -2) + matvec(of_ball(rotation, -3), centers_);
  std::vector<Part> parts;
  if (touching_.numel() > 0) parts.push_back(with_planes(centers, state, rotation));
  if (first_.numel() > 0) parts.push_back(with_balls(centers));
  const auto joined = [&](Tensor Part::*member, std::initializer_list<std::int64_t> last) {
    Tensors all;
    for (const Part& part : parts) {
      Shape shape = batch;
      shape.push_back(part.gap.size(-1));
      shape.insert(shape.end(), last);
      all.push_back((part.*member).expand(shape));
    }
    if (all.empty()) {  // nothing can touch
      Shape shape = batch;
      shape.push_back(0);
      shape.insert(shape.end(), last);
      return at::zeros(shape, centers.options());
    }
    return at::cat(all, -1 - static_cast<std::int64_t>(last.size()));
  };
  const Tensor gap = joined(&Part::gap, {}), normal = joined(&Part::normal, {3}), point = joined(&Part::point, {3});
  const Tensor frame = frames(normal);
  const auto jacobian = [&](const Tensor& body, const Tensor& is_body) {
    const Tensor arm = point - state.position.index_select(-2, body);
    return point_jacobian(frame, arm, rotation.index_select(-3, body)).unsqueeze(-2) * is_body;
  };
  Tensor J = jacobian(body_, is_body_);  // [..., c, 3, B, 6]
  if (is_other_.any().item<bool>()) J = J - jacobian(other_, is_other_);
  return {gap, J.flatten(-2).flatten(-3, -2), normal, point};
}

}  // namespace lcp::physics
