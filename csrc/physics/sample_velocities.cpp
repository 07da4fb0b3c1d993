#include "lcp/physics/sample_velocities.h"

#include <ATen/ATen.h>

namespace lcp::physics {
namespace {

using at::Tensor;

// The short step, in steps. Impacts later than that do not disturb it, and the rounding of velocities is divided by it.
constexpr double kShortStep = 1.0 / 64;

// The changes of the velocities, [..., B, 3] each.
struct Change {
  Tensor velocity, angular_velocity;
};

// The changes in a step of `share` of dt.
Change change_in(double share, const RigidState& state, const Tensor& u, const RigidScene& scene,
                 const RigidOptions& options) {
  RigidScene shorter = scene;
  shorter.dt = share * scene.dt;
  const RigidState next = step(state, u, shorter, options).next;
  return {next.velocity - state.velocity, next.angular_velocity - state.angular_velocity};
}

// The bodies alone, which touch nothing.
RigidScene without_contacts(RigidScene scene) {
  scene.planes.clear();
  for (RigidBody& body : scene.bodies) {
    body.centers = body.centers.slice(-2, 0, 0);
    body.radii = body.radii.slice(-1, 0, 0);
  }
  for (Tensor* of_pairs : {&scene.mu, &scene.restitution, &scene.stiffness, &scene.dissipation}) {
    if (of_pairs->defined()) *of_pairs = of_pairs->slice(-1, 0, 1);
  }
  return scene;
}

Tensor squared_length(const Tensor& x) { return x.square().sum(-1, true); }

// The state with velocities `steps` steps later, at constant acceleration.
//
// There are two estimates of the acceleration, and each body takes the smaller one. The change over a whole step knows
// contacts at rest whose gap is not quite closed, as the rollout does, but also has the impacts of the step. The change
// over a short step has only the impacts at its time. Where such an impact occurs, the change does not halve with the
// step; the acceleration of free motion is used then.
RigidState later(double steps, const RigidState& state, const Tensor& u, const RigidScene& scene,
                 RigidOptions options) {
  options.substeps = 1;
  options.stabilization = 0;  // A penetration that is removed gives a velocity, but is no acceleration.
  const Change whole = change_in(1, state, u, scene, options);
  const Change small = change_in(kShortStep, state, u, scene, options);
  const Change half = change_in(kShortStep / 2, state, u, scene, options);
  const Change free = change_in(1, state, u, without_contacts(scene), options);
  const Tensor has_impact = squared_length(small.velocity - 2 * half.velocity) > squared_length(small.velocity) / 4;
  const Tensor over_short = at::where(has_impact, free.velocity, small.velocity / kShortStep);
  const Tensor takes_whole = squared_length(whole.velocity) <= squared_length(over_short);
  const auto moved = [&](const Tensor& x, const Tensor& in_whole, const Tensor& in_short, const Tensor& in_free) {
    return x + steps * at::where(takes_whole, in_whole, at::where(has_impact, in_free, in_short / kShortStep));
  };
  return {state.position, state.orientation, moved(state.velocity, whole.velocity, small.velocity, free.velocity),
          moved(state.angular_velocity, whole.angular_velocity, small.angular_velocity, free.angular_velocity)};
}

}  // namespace

RigidState at_mid_steps(const RigidState& state, const Tensor& u, const RigidScene& scene,
                        const RigidOptions& options) {
  return later(-0.5, state, u, scene, options);
}

RigidState at_samples(const RigidState& state, const Tensor& u, const RigidScene& scene, const RigidOptions& options) {
  return later(0.5, state, u, scene, options);
}

}  // namespace lcp::physics
