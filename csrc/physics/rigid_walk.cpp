#include "physics/rigid_walk.h"

#include <ATen/ATen.h>
#include <c10/core/SymIntArrayRef.h>

#include <optional>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "physics/stepping.h"
#include "physics/walk_function.h"

namespace lcp::physics {
namespace {

using at::Tensor;

// The places of what a walk depends on.
enum Place : std::size_t {
  kMass,
  kInertia,
  kCenters,
  kRadii,
  kNormals,
  kOffsets,
  kGravity,
  kMu,
  kRestitution,
  kPosition,
  kOrientation,
  kVelocity,
  kAngularVelocity,
  kForces,
  kDrag,
  kStiffness,
  kDissipation,
  kPlaces
};

std::int64_t count_of(const std::vector<RigidBody>& bodies) { return static_cast<std::int64_t>(bodies.size()); }

// Tensors [..., k_i] one behind another, [..., sum of k_i].
Tensor joined(const Tensors& parts) {
  if (parts.empty()) return at::zeros({0}, at::kDouble);
  if (parts.size() == 1) return parts.front();
  Shape shape;
  for (const Tensor& part : parts) shape = common_shape({shape, leading(part)});
  Tensors whole;
  whole.reserve(parts.size());
  for (const Tensor& part : parts) whole.push_back(expanded(part, shape, {part.size(-1)}));
  return at::cat(whole, -1);
}

// What a walk depends on, in float64, as lcp::_rigid_walk takes it. What the formulation does not read is 0.
Tensors packed(const RigidState& state, const Tensor& u, const RigidScene& scene, std::int64_t pairs,
               bool is_compliant) {
  const auto number = [](const Tensor& x) { return x.to(at::kDouble); };
  const auto flat = [&](const Tensor& x) { return number(x).flatten(-2); };
  Tensors mass, inertia, centers, radii, drag, normals, offsets;
  for (const RigidBody& body : scene.bodies) {
    mass.push_back(number(body.mass).unsqueeze(-1));
    inertia.push_back(flat(body.inertia));
    centers.push_back(flat(body.centers));
    radii.push_back(number(body.radii));
    drag.push_back(body.drag.defined() ? number(body.drag).unsqueeze(-1) : at::zeros({1}, at::kDouble));
  }
  for (const Plane& plane : scene.planes) {
    normals.push_back(number(plane.normal));
    offsets.push_back(number(plane.offset).unsqueeze(-1));
  }
  const auto of_pairs = [&](const Tensor& x) { return expanded(number(x), leading(x).vec(), {pairs}); };
  Tensors all(kPlaces);
  all[kMass] = joined(mass);
  all[kInertia] = joined(inertia);
  all[kCenters] = joined(centers);
  all[kRadii] = joined(radii);
  all[kNormals] = joined(normals);
  all[kOffsets] = joined(offsets);
  all[kGravity] = number(scene.gravity);
  all[kMu] = of_pairs(scene.mu);
  const Tensor none = at::zeros({pairs}, at::kDouble);
  all[kRestitution] = is_compliant ? none : of_pairs(scene.restitution);
  all[kStiffness] = is_compliant ? of_pairs(scene.stiffness) : none;
  all[kDissipation] = is_compliant ? of_pairs(scene.dissipation) : none;
  all[kPosition] = flat(state.position);
  all[kOrientation] = flat(state.orientation);
  all[kVelocity] = flat(state.velocity);
  all[kAngularVelocity] = flat(state.angular_velocity);
  all[kForces] = number(u).movedim(0, -3).flatten(-2);
  all[kDrag] = joined(drag);
  return all;
}

// [..., k] of [..., count k] for each of the bodies or planes.
Tensor part_of(const Tensor& x, std::int64_t count, std::int64_t i) {
  return x.unflatten(-1, {count, x.size(-1) / count}).select(-2, i);
}

// What a walk is of, besides its tensors.
class Walked : public WalkFunction {
 public:
  Walked(const RigidScene& scene, const RigidOptions& options) : scene_(scene), options_(options) {}

  std::size_t differentiable() const override { return 5; }
  std::size_t core_dims(std::size_t place) const override { return place == kForces ? 2 : 1; }

  Tensors run(at::TensorList x, bool with_gradient) const override {
    using Results = std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor>;
    static const auto walk = operator_named<Results(
        const Tensor& mass, const Tensor& inertia, const Tensor& centers, const Tensor& radii, const Tensor& normals,
        const Tensor& offsets, const Tensor& gravity, const Tensor& mu, const Tensor& restitution,
        const Tensor& position, const Tensor& orientation, const Tensor& velocity, const Tensor& angular_velocity,
        const Tensor& u, const Tensor& drag, const Tensor& stiffness, const Tensor& dissipation,
        c10::SymIntArrayRef pairs, double dt, std::optional<double> bounce_threshold, double stabilization,
        std::string_view formulation, std::int64_t directions, double angle, double sigma, double beta,
        std::int64_t num_unknowns, double tolerance)>("lcp::_rigid_walk");
    return listed(walk.call(x[0], x[1], x[2], x[3], x[4], x[5], x[6], x[7], x[8], x[9], x[10], x[11], x[12], x[13],
                            x[14], x[15], x[16], pairs(), scene_.dt, options_.bounce_threshold, options_.stabilization,
                            formulation(), options_.directions.count, options_.directions.angle,
                            options_.regularization.sigma, options_.regularization.beta,
                            with_gradient ? unknowns_of_each() * x[kMu].size(-1) : 0, tolerance()));
  }

  Tensors adjoint(const Tensors& x, const Tensors& path, const Tensors& g, std::int64_t wanted) const override {
    using Results = std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor,
                               Tensor, Tensor, Tensor, Tensor, Tensor, Tensor>;
    static const auto adjoint = operator_named<Results(
        const Tensor& mass, const Tensor& inertia, const Tensor& centers, const Tensor& radii, const Tensor& normals,
        const Tensor& offsets, const Tensor& gravity, const Tensor& mu, const Tensor& restitution,
        const Tensor& position, const Tensor& orientation, const Tensor& velocity, const Tensor& angular_velocity,
        const Tensor& u, const Tensor& drag, const Tensor& stiffness, const Tensor& dissipation,
        const Tensor& next_position, const Tensor& next_orientation, const Tensor& next_velocity,
        const Tensor& next_angular_velocity, const Tensor& gamma, const Tensor& unknowns, const Tensor& states,
        const Tensor& chosen, const Tensor& status, const Tensor& g_position, const Tensor& g_orientation,
        const Tensor& g_velocity, const Tensor& g_angular_velocity, const Tensor& g_gamma, c10::SymIntArrayRef pairs,
        double dt, std::optional<double> bounce_threshold, double stabilization, std::string_view formulation,
        std::int64_t directions, double angle, double sigma, double beta, double tolerance, std::string_view ties,
        std::int64_t wanted)>("lcp::_rigid_walk_adjoint");
    return listed(adjoint.call(x[0], x[1], x[2], x[3], x[4], x[5], x[6], x[7], x[8], x[9], x[10], x[11], x[12], x[13],
                               x[14], x[15], x[16], path[0], path[1], path[2], path[3], path[4], path[5], path[6],
                               path[7], path[8], g[0], g[1], g[2], g[3], g[4], pairs(), scene_.dt,
                               options_.bounce_threshold, options_.stabilization, formulation(),
                               options_.directions.count, options_.directions.angle, options_.regularization.sigma,
                               options_.regularization.beta, tolerance(), options_.ties, wanted));
  }

  Tensors by_tensors(const Tensors& x) const override {
    RigidScene with = scene_;
    const std::int64_t bodies = count_of(scene_.bodies), planes = static_cast<std::int64_t>(scene_.planes.size());
    std::int64_t ball = 0;
    for (std::int64_t i = 0; i < bodies; ++i) {
      RigidBody& body = with.bodies[i];
      const std::int64_t balls = scene_.bodies[i].radii.size(-1);
      body.mass = x[kMass].select(-1, i);
      body.inertia = part_of(x[kInertia], bodies, i).unflatten(-1, {3, 3});
      body.centers = x[kCenters].narrow(-1, 3 * ball, 3 * balls).unflatten(-1, {balls, 3});
      body.radii = x[kRadii].narrow(-1, ball, balls);
      body.drag = x[kDrag].select(-1, i);
      ball += balls;
    }
    for (std::int64_t h = 0; h < planes; ++h) {
      with.planes[h].normal = part_of(x[kNormals], planes, h);
      with.planes[h].offset = x[kOffsets].select(-1, h);
    }
    with.gravity = x[kGravity];
    with.mu = x[kMu];
    with.restitution = x[kRestitution];
    with.stiffness = x[kStiffness];
    with.dissipation = x[kDissipation];
    const auto of_bodies = [&](Place place, std::int64_t size) { return x[place].unflatten(-1, {bodies, size}); };
    const RigidSteps steps = physics::step_by_step(
        {of_bodies(kPosition, 3), of_bodies(kOrientation, 4), of_bodies(kVelocity, 3), of_bodies(kAngularVelocity, 3)},
        of_bodies(kForces, 6).movedim(-3, 0), with, options_);
    const auto flat = [](const Tensor& all) { return all.flatten(-2).movedim(0, -2); };
    return {flat(steps.next.position), flat(steps.next.orientation), flat(steps.next.velocity),
            flat(steps.next.angular_velocity), steps.gamma.movedim(0, -2)};
  }

 private:
  double tolerance() const { return options_.tolerance.value_or(RigidOptions::kTolerance); }

  std::string_view formulation() const {
    switch (options_.formulation) {
      case RigidFormulation::kExactCone:
        break;
      case RigidFormulation::kPolyhedral:
        return "polyhedral";
      case RigidFormulation::kCompliant:
        return "compliant";
    }
    return "exact_cone";
  }

  // How many numbers of each contact the walk backward needs besides the impulses: those of the LCP, or y of compliant
  // contact.
  std::int64_t unknowns_of_each() const {
    switch (options_.formulation) {
      case RigidFormulation::kExactCone:
        break;
      case RigidFormulation::kPolyhedral:
        return options_.directions.count + 2;
      case RigidFormulation::kCompliant:
        return 3;
    }
    return 0;
  }

  std::vector<c10::SymInt> pairs() const {
    std::vector<std::int64_t> first_ball;
    std::int64_t balls = 0;
    for (const RigidBody& body : scene_.bodies) {
      first_ball.push_back(balls);
      balls += body.radii.size(-1);
    }
    std::vector<c10::SymInt> all;
    for (const ContactPair& pair : contact_pairs(scene_)) {
      const bool is_plane = pair.other == ContactPair::Other::kPlane;
      const std::int64_t behind = is_plane ? 0 : static_cast<std::int64_t>(scene_.planes.size());
      all.insert(all.end(), {pair.body, first_ball[pair.body] + pair.ball, pair.other_body,
                             behind + (is_plane ? 0 : first_ball[pair.other_body]) + pair.index});
    }
    return all;
  }

  RigidScene scene_;
  RigidOptions options_;
};

}  // namespace

bool can_walk(const RigidState& state, const Tensor& u, const RigidScene& scene, const RigidOptions& options) {
  if (options.kappa != 0) return false;
  Tensors all = {state.position, state.orientation, state.velocity, state.angular_velocity, u, scene.gravity, scene.mu};
  if (options.formulation == RigidFormulation::kCompliant) {
    all.insert(all.end(), {scene.stiffness, scene.dissipation});
  } else {
    all.push_back(scene.restitution);
  }
  for (const RigidBody& body : scene.bodies) {
    all.insert(all.end(), {body.mass, body.inertia, body.centers, body.radii});
    if (body.drag.defined()) all.push_back(body.drag);
  }
  for (const Plane& plane : scene.planes) all.insert(all.end(), {plane.normal, plane.offset});
  return can_walk(all);
}

RigidSteps walk(const RigidState& state, const Tensor& u, const RigidScene& scene, const RigidOptions& options) {
  const auto pairs = static_cast<std::int64_t>(contact_pairs(scene).size());
  const bool is_compliant = options.formulation == RigidFormulation::kCompliant;
  const Tensors results =
      walk(packed(state, u, scene, pairs, is_compliant), c10::make_intrusive<Walked>(scene, options));
  const at::ScalarType dtype = state.velocity.scalar_type();
  const std::int64_t bodies = count_of(scene.bodies);
  const auto of_bodies = [&](std::size_t k, std::int64_t size) {
    return results[k].to(dtype).movedim(-2, 0).unflatten(-1, {bodies, size});
  };
  return {{of_bodies(0, 3), of_bodies(1, 4), of_bodies(2, 3), of_bodies(3, 3)},
          results[4].to(dtype).movedim(-2, 0),
          results[8].movedim(-1, 0),
          results[9].movedim(-1, 0)};
}

}  // namespace lcp::physics
