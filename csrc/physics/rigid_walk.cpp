#include "physics/rigid_walk.h"

#include <ATen/ATen.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/GradMode.h>
#include <c10/core/SymIntArrayRef.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "physics/stepping.h"

namespace lcp::physics {
namespace {

using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

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
  kPlaces
};

// The first results of a walk, which have gradients.
constexpr std::size_t kDifferentiable = 5;

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

// What a walk depends on, in float64, as lcp::_rigid_walk takes it.
variable_list packed(const RigidState& state, const Tensor& u, const RigidScene& scene, std::int64_t pairs) {
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
  variable_list all(kPlaces);
  all[kMass] = joined(mass);
  all[kInertia] = joined(inertia);
  all[kCenters] = joined(centers);
  all[kRadii] = joined(radii);
  all[kNormals] = joined(normals);
  all[kOffsets] = joined(offsets);
  all[kGravity] = number(scene.gravity);
  all[kMu] = of_pairs(scene.mu);
  all[kRestitution] = of_pairs(scene.restitution);
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
struct Walked : torch::CustomClassHolder {
  RigidScene scene;
  RigidOptions options;

  Walked(const RigidScene& s, const RigidOptions& o) : scene(s), options(o) {}

  // The results that have gradients, [..., T, k], by operators of tensors.
  variable_list step_by_step(const variable_list& x) const {
    RigidScene with = scene;
    const std::int64_t bodies = count_of(scene.bodies), planes = static_cast<std::int64_t>(scene.planes.size());
    std::int64_t ball = 0;
    for (std::int64_t i = 0; i < bodies; ++i) {
      RigidBody& body = with.bodies[i];
      const std::int64_t balls = scene.bodies[i].radii.size(-1);
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
    const auto of_bodies = [&](Place place, std::int64_t size) { return x[place].unflatten(-1, {bodies, size}); };
    const RigidSteps steps = physics::step_by_step(
        {of_bodies(kPosition, 3), of_bodies(kOrientation, 4), of_bodies(kVelocity, 3), of_bodies(kAngularVelocity, 3)},
        of_bodies(kForces, 6).movedim(-3, 0), with, options);
    const auto flat = [](const Tensor& all) { return all.flatten(-2).movedim(0, -2); };
    return {flat(steps.next.position), flat(steps.next.orientation), flat(steps.next.velocity),
            flat(steps.next.angular_velocity), steps.gamma.movedim(0, -2)};
  }

  std::vector<c10::SymInt> pairs() const {
    std::vector<std::int64_t> first_ball;
    std::int64_t balls = 0;
    for (const RigidBody& body : scene.bodies) {
      first_ball.push_back(balls);
      balls += body.radii.size(-1);
    }
    std::vector<c10::SymInt> all;
    for (const ContactPair& pair : contact_pairs(scene)) {
      const bool is_plane = pair.other == ContactPair::Other::kPlane;
      const std::int64_t behind = is_plane ? 0 : static_cast<std::int64_t>(scene.planes.size());
      all.insert(all.end(), {pair.body, first_ball[pair.body] + pair.ball, pair.other_body,
                             behind + (is_plane ? 0 : first_ball[pair.other_body]) + pair.index});
    }
    return all;
  }
};

template <class Signature>
c10::TypedOperatorHandle<Signature> operator_named(const char* name) {
  return c10::Dispatcher::singleton().findSchemaOrThrow(name, "").typed<Signature>();
}

// x, [..., size...], summed to `shape` in an order that depends on nothing but both shapes.
Tensor summed(const Tensor& x, at::IntArrayRef shape, std::size_t core_dims) {
  if (x.sizes() == shape) return x;
  const auto flat = [&](at::IntArrayRef sizes) {
    std::vector<c10::SymInt> all(sizes.begin(), sizes.end() - core_dims);
    all.emplace_back(c10::multiply_integers(sizes.end() - core_dims, sizes.end()));
    return all;
  };
  std::vector<c10::SymInt> to = flat(shape);
  to.emplace_back(1);
  static const auto sum_outer =
      operator_named<Tensor(const Tensor&, const Tensor&, c10::SymIntArrayRef)>("lcp::_sum_outer");
  return sum_outer.call(x.reshape_symint(flat(x.sizes())), at::ones({1}, x.options()), to).reshape(shape);
}

class Walk : public torch::autograd::Function<Walk> {
 public:
  static variable_list forward(AutogradContext* context, at::TensorList x, const c10::intrusive_ptr<Walked>& walked) {
    using Results = std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor>;
    static const auto walk = operator_named<Results(
        const Tensor& mass, const Tensor& inertia, const Tensor& centers, const Tensor& radii, const Tensor& normals,
        const Tensor& offsets, const Tensor& gravity, const Tensor& mu, const Tensor& restitution,
        const Tensor& position, const Tensor& orientation, const Tensor& velocity, const Tensor& angular_velocity,
        const Tensor& u, const Tensor& drag, c10::SymIntArrayRef pairs, double dt,
        std::optional<double> bounce_threshold, double stabilization, double tolerance)>("lcp::_rigid_walk");
    const RigidOptions& options = walked->options;
    const auto [position, orientation, velocity, angular_velocity, gamma, chosen, status, iterations] =
        walk.call(x[0], x[1], x[2], x[3], x[4], x[5], x[6], x[7], x[8], x[9], x[10], x[11], x[12], x[13], x[14],
                  walked->pairs(), walked->scene.dt, options.bounce_threshold, options.stabilization,
                  options.tolerance.value_or(RigidOptions::kTolerance));
    variable_list saved = x.vec();
    saved.insert(saved.end(), {position, orientation, velocity, angular_velocity, gamma, chosen, status});
    context->save_for_backward(std::move(saved));
    context->saved_data["walked"] = c10::IValue::make_capsule(walked);
    context->mark_non_differentiable({status, iterations});
    return {position, orientation, velocity, angular_velocity, gamma, status, iterations};
  }

  static variable_list backward(AutogradContext* context, const variable_list& g) {
    const auto walked = c10::static_intrusive_pointer_cast<Walked>(context->saved_data["walked"].toCapsule());
    const variable_list saved = context->get_saved_variables();
    const variable_list x(saved.begin(), saved.begin() + kPlaces), path(saved.begin() + kPlaces, saved.end());
    std::vector<bool> needs(kPlaces);
    for (std::size_t k = 0; k < kPlaces; ++k) needs[k] = context->needs_input_grad(k);
    variable_list gradients =
        c10::GradMode::is_enabled() ? differentiable(*walked, x, g, needs) : walk_back(*walked, x, path, g, needs);
    gradients.emplace_back();  // of walked
    return gradients;
  }

 private:
  static variable_list walk_back(const Walked& walked, const variable_list& x, const variable_list& path,
                                 const variable_list& g, const std::vector<bool>& needs) {
    using Results = std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor,
                               Tensor, Tensor, Tensor, Tensor>;
    static const auto adjoint = operator_named<Results(
        const Tensor& mass, const Tensor& inertia, const Tensor& centers, const Tensor& radii, const Tensor& normals,
        const Tensor& offsets, const Tensor& gravity, const Tensor& mu, const Tensor& restitution,
        const Tensor& position, const Tensor& orientation, const Tensor& velocity, const Tensor& angular_velocity,
        const Tensor& u, const Tensor& drag, const Tensor& next_position, const Tensor& next_orientation,
        const Tensor& next_velocity, const Tensor& next_angular_velocity, const Tensor& gamma, const Tensor& chosen,
        const Tensor& status, const Tensor& g_position, const Tensor& g_orientation, const Tensor& g_velocity,
        const Tensor& g_angular_velocity, const Tensor& g_gamma, c10::SymIntArrayRef pairs, double dt,
        std::optional<double> bounce_threshold, double stabilization, std::int64_t wanted)>("lcp::_rigid_walk_adjoint");
    const auto given = [&](std::size_t k) {
      const Tensor& of = path[k];
      return g[k].defined() ? g[k] : at::zeros({1, 1}, of.options()).expand({of.size(-2), of.size(-1)});
    };
    std::int64_t wanted = 0;
    for (std::size_t k = 0; k < kPlaces; ++k) wanted |= std::int64_t{needs[k]} << k;
    const auto results = adjoint.call(x[0], x[1], x[2], x[3], x[4], x[5], x[6], x[7], x[8], x[9], x[10], x[11], x[12],
                                      x[13], x[14], path[0], path[1], path[2], path[3], path[4], path[5], path[6],
                                      given(0), given(1), given(2), given(3), given(4), walked.pairs(), walked.scene.dt,
                                      walked.options.bounce_threshold, walked.options.stabilization, wanted);
    variable_list all = std::apply([](const auto&... result) { return variable_list{result...}; }, results);
    for (std::size_t k = 0; k < kPlaces; ++k) {
      all[k] = needs[k] ? summed(all[k], x[k].sizes(), k == kForces ? 2 : 1) : Tensor();
    }
    return all;
  }

  // The gradients of the same by operators of tensors, which can be differentiated again.
  static variable_list differentiable(const Walked& walked, const variable_list& given, const variable_list& g,
                                      const std::vector<bool>& needs) {
    variable_list x, wanted;
    for (std::size_t k = 0; k < kPlaces; ++k) {
      // What is derived by one input must not count for another that it was computed from.
      x.push_back(needs[k] ? given[k].view_as(given[k]) : given[k]);
      if (needs[k]) wanted.push_back(x.back());
    }
    const variable_list all = walked.step_by_step(x);
    variable_list results, of_results;
    for (std::size_t k = 0; k < kDifferentiable; ++k) {
      if (!g[k].defined() || !all[k].requires_grad()) continue;
      results.push_back(all[k]);
      of_results.push_back(g[k]);
    }
    variable_list gradients(kPlaces);
    if (results.empty()) return gradients;
    const variable_list found = torch::autograd::grad(results, wanted, of_results, /*retain_graph=*/true,
                                                      /*create_graph=*/true, /*allow_unused=*/true);
    for (std::size_t k = 0, next = 0; k < kPlaces; ++k) {
      if (needs[k]) gradients[k] = found[next++];
    }
    return gradients;
  }
};

// Whether a kernel can read x: not where it stands for other tensors, as those of torch.func do.
bool is_plain(const Tensor& x) {
  using c10::DispatchKey;
  const c10::DispatchKeySet wrappers({DispatchKey::FuncTorchBatched, DispatchKey::FuncTorchGradWrapper,
                                      DispatchKey::Functionalize, DispatchKey::Python});
  const bool wraps = x.key_set().has_any(wrappers);
  return x.device().is_cpu() && x.layout() == at::kStrided && !wraps && !x._fw_grad(0).defined();
}

}  // namespace

bool can_walk(const RigidState& state, const Tensor& u, const RigidScene& scene, const RigidOptions& options) {
  if (options.formulation != RigidFormulation::kExactCone || options.kappa != 0) return false;
  Tensors all = {state.position, state.orientation, state.velocity,   state.angular_velocity, u,
                 scene.gravity,  scene.mu,          scene.restitution};
  for (const RigidBody& body : scene.bodies) {
    all.insert(all.end(), {body.mass, body.inertia, body.centers, body.radii});
    if (body.drag.defined()) all.push_back(body.drag);
  }
  for (const Plane& plane : scene.planes) all.insert(all.end(), {plane.normal, plane.offset});
  return std::all_of(all.begin(), all.end(), is_plain);
}

RigidSteps walk(const RigidState& state, const Tensor& u, const RigidScene& scene, const RigidOptions& options) {
  auto walked = c10::make_intrusive<Walked>(scene, options);
  const auto pairs = static_cast<std::int64_t>(walked->pairs().size() / 4);
  const variable_list inputs = packed(state, u, scene, pairs);
  const variable_list results = Walk::apply(at::TensorList(inputs), std::move(walked));
  const at::ScalarType dtype = state.velocity.scalar_type();
  const std::int64_t bodies = count_of(scene.bodies);
  const auto of_bodies = [&](std::size_t k, std::int64_t size) {
    return results[k].to(dtype).movedim(-2, 0).unflatten(-1, {bodies, size});
  };
  return {{of_bodies(0, 3), of_bodies(1, 4), of_bodies(2, 3), of_bodies(3, 3)},
          results[4].to(dtype).movedim(-2, 0),
          results[5].movedim(-1, 0),
          results[6].movedim(-1, 0)};
}

}  // namespace lcp::physics
