#include "physics/scene_list.h"

#include <ATen/ATen.h>

#include <iterator>

namespace lcp::physics {

using at::Tensor;

RigidScene scene_of_list(at::TensorList x, std::int64_t first, std::int64_t bodies, at::IntArrayRef plane_bodies,
                         at::IntArrayRef touches, at::IntArrayRef touch_counts, double dt) {
  const std::int64_t least_bodies = first > 0 ? 1 : 0, planes = std::ssize(plane_bodies), count = std::ssize(x);
  TORCH_CHECK(bodies >= least_bodies && bodies <= count, "bodies must be from ", least_bodies,
              " to the number of tensors; got ", bodies);
  const std::int64_t least = first + 5 * bodies + 2 * planes + 3;
  TORCH_CHECK(count != least + 1, "stiffness and dissipation must both be given, or neither");
  TORCH_CHECK(count == least || count == least + 2, "x must be ", least, " tensors, or ", least + 2,
              " with stiffness and dissipation; got ", count);
  TORCH_CHECK(touch_counts.size() == plane_bodies.size(), "touch_counts must be ", planes, " numbers; got ",
              touch_counts.size());
  x = x.slice(first);
  RigidScene scene;
  for (; std::ssize(scene.bodies) < bodies; x = x.slice(5)) scene.bodies.push_back({x[0], x[1], x[2], x[3], x[4]});
  for (std::size_t k = 0; k < plane_bodies.size(); ++k, x = x.slice(2)) {
    TORCH_CHECK(touch_counts[k] >= 0 && touch_counts[k] <= static_cast<std::int64_t>(touches.size()),
                "touch_counts must have the sum of the number of touches; got ", touch_counts);
    scene.planes.push_back({x[0], x[1], plane_bodies[k], touches.slice(0, touch_counts[k]).vec()});
    touches = touches.slice(touch_counts[k]);
  }
  scene.dt = dt;
  scene.gravity = x[0];
  scene.mu = x[1];
  scene.restitution = x[2];
  if (x.size() == 3) return scene;
  scene.stiffness = x[3];
  scene.dissipation = x[4];
  return scene;
}

std::vector<Tensor> list_of_scene(const RigidScene& scene) {
  std::vector<Tensor> x;
  for (const RigidBody& body : scene.bodies) {
    x.insert(x.end(), {body.mass, body.inertia, body.centers, body.radii,
                       body.drag.defined() ? body.drag : at::zeros_like(body.mass)});
  }
  for (const Plane& plane : scene.planes) x.insert(x.end(), {plane.normal, plane.offset});
  x.insert(x.end(), {scene.gravity, scene.mu, scene.restitution});
  if (scene.stiffness.defined() && scene.dissipation.defined()) {
    x.insert(x.end(), {scene.stiffness, scene.dissipation});
  }
  return x;
}

}  // namespace lcp::physics
