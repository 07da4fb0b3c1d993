#include "physics/rigid_rollout.h"

#include <ATen/ATen.h>
#include <ATen/ExpandUtils.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "ops/rollout/rollout.h"
#include "physics/rigid_stepper.h"
#include "physics/rollout_operator.h"
#include "physics/stepping.h"
#include "rigid/parameter.h"

namespace lcp::physics {
namespace scene_rollout {
namespace {

using at::Tensor;
using ops::StepText;
using ops::StepWriter;
using namespace rigid;  // NOLINT(google-build-using-namespace): the names of the parameters

// The places of what a rollout of the operator has behind the parameters, and of its results.
constexpr std::size_t kFirst = kParameters, kForces = kFirst + kStateParts, kInputs = kForces + 1;
constexpr std::size_t kGamma = kStateParts, kStatus = kGamma + 4, kIterations = kStatus + 1;

// The square of the length of a plane's normal may differ from 1 by this much: a normal of four digits is accepted.
constexpr double kUnitLength = 1e-4;

// Throws where the normal of a plane is not of length 1 and can be read, else returns NaN for it, [...].
Tensor checked_length(const Tensor& normal) {
  const c10::NoGradGuard no_grad;
  if (normal.dim() == 1 && normal.device().is_cpu() && normal.scalar_type() == at::kDouble && can_read(normal)) {
    const auto x = normal.accessor<double, 1>();  // operators of tensors would take longer than a step
    if (std::abs(x[0] * x[0] + x[1] * x[1] + x[2] * x[2] - 1) <= kUnitLength) return at::zeros({}, at::kDouble);
  }
  const Tensor square = normal.square().sum(-1), all = without_transforms(square);
  const auto fits = [](const Tensor& x) { return (x - 1).abs() <= kUnitLength; };
  TORCH_CHECK(!can_read(all) || fits(all).all().item<bool>(), "the normal of a plane must have length 1; got ",
              all.sqrt());
  return at::where(fits(square), 0, std::numeric_limits<double>::quiet_NaN());
}

// u, [rows, batch..., B, 6], with NaN for the elements of which a parameter is out of its range: a body in flight does
// not read those of its contacts.
Tensor checked_inputs(Tensor u, const RigidScene& scene, const RigidOptions& options) {
  const auto check = [&](const Tensor& parameter, const Tensor& in_range, std::int64_t core_dims) {
    if (in_range.is_same(parameter)) return;
    u = refused_where_nan(core_dims == 0 ? in_range : in_range.sum(-1), u, 2);
  };
  for (const RigidBody& body : scene.bodies) {
    check(body.mass, positive_or_nan(body.mass), 0);
    check(body.radii, nonnegative_or_nan(body.radii), 1);
    if (body.drag.defined()) check(body.drag, nonnegative_or_nan(body.drag), 0);
  }
  for (const Plane& plane : scene.planes) u = refused_where_nan(checked_length(plane.normal), u, 2);
  check(scene.mu, nonnegative_or_nan(scene.mu), 1);
  if (options.formulation == RigidFormulation::kCompliant) {
    check(scene.stiffness, positive_or_nan(scene.stiffness), 1);
    check(scene.dissipation, nonnegative_or_nan(scene.dissipation), 1);
  } else {
    check(scene.restitution, share_or_nan(scene.restitution), 1);
  }
  return u;
}

std::int64_t count_of(const std::vector<RigidBody>& bodies) { return static_cast<std::int64_t>(bodies.size()); }

// Sizes may be symbols, as in a program that torch.export makes for any batch.
using SymShape = c10::SymDimVector;

SymShape common(const SymShape& shape, const Tensor& x, std::int64_t core_dims) {
  return at::infer_size_symdimvector(shape, x.sym_sizes().slice(0, x.dim() - core_dims));
}

Tensor expanded_to(const Tensor& x, SymShape shape, std::initializer_list<c10::SymInt> core) {
  shape.append(core.begin(), core.end());
  return x.expand_symint(shape);
}

// Tensors [..., k_i] one behind another, [..., sum of k_i].
Tensor joined(const Tensors& parts) {
  if (parts.size() == 1) return parts.front();
  SymShape shape;
  for (const Tensor& part : parts) shape = common(shape, part, 1);
  Tensors whole;
  whole.reserve(parts.size());
  for (const Tensor& part : parts) whole.push_back(expanded_to(part, shape, {part.sym_size(-1)}));
  return at::cat(whole, -1);
}

// The inputs of the operator, in float64. What the formulation does not read is 0.
Tensors packed(const RigidState& state, const Tensor& u, const RigidScene& scene, std::int64_t pairs,
               bool is_compliant) {
  const auto number = [](const Tensor& x) { return x.to(at::kDouble); };
  const auto flat = [&](const Tensor& x) { return number(x).flatten(-2); };
  const auto zeros = [&](std::int64_t size) { return at::zeros({size}, state.position.options().dtype(at::kDouble)); };
  Tensors mass, inertia, centers, radii, drag, normals, offsets;
  for (const RigidBody& body : scene.bodies) {
    mass.push_back(number(body.mass).unsqueeze(-1));
    inertia.push_back(flat(body.inertia));
    centers.push_back(flat(body.centers));
    radii.push_back(number(body.radii));
    drag.push_back(body.drag.defined() ? number(body.drag).unsqueeze(-1) : zeros(1));
  }
  for (const Plane& plane : scene.planes) {
    normals.push_back(number(plane.normal));
    offsets.push_back(number(plane.offset).unsqueeze(-1));
  }
  const auto of_pairs = [&](const Tensor& x) { return expanded_to(number(x), common({}, x, 1), {pairs}); };
  const Tensor none = zeros(pairs);
  Tensors all(kInputs);
  all[kMass] = joined(mass);
  all[kInertia] = joined(inertia);
  all[kDrag] = joined(drag);
  all[kCenters] = joined(centers);
  all[kRadii] = joined(radii);
  all[kNormals] = normals.empty() ? zeros(0) : joined(normals);
  all[kOffsets] = offsets.empty() ? zeros(0) : joined(offsets);
  all[kGravity] = number(scene.gravity);
  all[kMu] = of_pairs(scene.mu);
  all[kRestitution] = is_compliant ? none : of_pairs(scene.restitution);
  all[kStiffness] = is_compliant ? of_pairs(scene.stiffness) : none;
  all[kDissipation] = is_compliant ? of_pairs(scene.dissipation) : none;
  std::fill(all.begin() + kMassCenter, all.end(), zeros(0));
  all[kFirst + kPosition] = flat(state.position);
  all[kFirst + kOrientation] = flat(state.orientation);
  all[kFirst + kVelocity] = flat(state.velocity);
  all[kFirst + kAngularVelocity] = flat(state.angular_velocity);
  all[kForces] = number(u).movedim(0, -3).flatten(-2);
  return all;
}

// What a closed loop has behind the other inputs of the operator: K, [..., T, 72 B B], whose columns are those of the
// operator, all positions first, and the references, [..., T, 13 B].
Tensors packed(const Feedback<RigidState>& feedback, std::int64_t bodies, std::int64_t rows, std::int64_t substeps) {
  const auto of_steps = [&](const char* name, const Tensor& x, std::int64_t m, std::int64_t n) {
    const Tensor of_rows = ops::of_all_steps(name, x.to(at::kDouble), {m, n}, rows, /*steps_first=*/true);
    return substeps == 1 ? of_rows : of_rows.repeat_interleave(substeps, 0);
  };
  const Tensor K = of_steps("K", feedback.K, 6 * bodies, 12 * bodies);
  const auto columns = K.unflatten(-1, {2, bodies, 2, 3}).unbind(-4);  // of positions and of velocities
  Tensors parts;
  for (const Tensor& half : columns) {
    for (const Tensor& part : half.unbind(-2)) parts.push_back(part.flatten(-2));
  }
  const RigidState& at = feedback.reference;
  const Tensor q = of_steps("orientation of the reference", at.orientation, bodies, 4);
  const Tensors reference = {of_steps("position of the reference", at.position, bodies, 3), q / q.norm(2, -1, true),
                             of_steps("velocity of the reference", at.velocity, bodies, 3),
                             of_steps("angular_velocity of the reference", at.angular_velocity, bodies, 3)};
  Tensors numbers;
  for (const Tensor& x : reference) numbers.push_back(x.flatten(-2).movedim(0, -2));
  SymShape shape;
  for (const Tensor& x : numbers) shape = common(shape, x, 1);
  for (Tensor& x : numbers) x = expanded_to(x, shape, {x.sym_size(-1)});
  return {at::cat(parts, -1).flatten(-2).movedim(0, -2), at::cat(numbers, -1)};
}

// [..., k] of [..., count k] for each of the bodies or planes.
Tensor part_of(const Tensor& x, std::int64_t count, std::int64_t i) {
  return x.unflatten(-1, {count, x.size(-1) / count}).select(-2, i);
}

// The ends of the steps and their impulses for the inputs of the operator, [..., T, k].
Tensors by_tensors(const StepText& step, const Tensors& x) {
  TORCH_CHECK(step.counts_if("parents").empty(), "rollouts of bodies with joints have derivatives of the first order");
  RigidScene scene = scene_of(step.text());
  const std::vector<std::int64_t> balls = step.counts("balls");
  const std::int64_t bodies = count_of(scene.bodies), planes = static_cast<std::int64_t>(scene.planes.size());
  std::int64_t ball = 0;
  for (std::int64_t i = 0; i < bodies; ++i) {
    RigidBody& body = scene.bodies[i];
    body.mass = x[kMass].select(-1, i);
    body.inertia = part_of(x[kInertia], bodies, i).unflatten(-1, {3, 3});
    body.centers = x[kCenters].narrow(-1, 3 * ball, 3 * balls[i]).unflatten(-1, {balls[i], 3});
    body.radii = x[kRadii].narrow(-1, ball, balls[i]);
    body.drag = x[kDrag].select(-1, i);
    ball += balls[i];
  }
  for (std::int64_t h = 0; h < planes; ++h) {
    scene.planes[h].normal = part_of(x[kNormals], planes, h);
    scene.planes[h].offset = x[kOffsets].select(-1, h);
  }
  scene.gravity = x[kGravity];
  scene.mu = x[kMu];
  scene.restitution = x[kRestitution];
  scene.stiffness = x[kStiffness];
  scene.dissipation = x[kDissipation];
  const auto of_bodies = [&](std::size_t place, std::int64_t size) { return x[place].unflatten(-1, {bodies, size}); };
  const RigidSteps steps = step_by_step({of_bodies(kFirst + kPosition, 3), of_bodies(kFirst + kOrientation, 4),
                                         of_bodies(kFirst + kVelocity, 3), of_bodies(kFirst + kAngularVelocity, 3)},
                                        of_bodies(kForces, 6).movedim(-3, 0), scene, options_of(step.text()));
  const auto flat = [](const Tensor& all) { return all.flatten(-2).movedim(0, -2); };
  const Tensor none = flat(steps.next.position).narrow(-1, 0, 0);
  return {flat(steps.next.position),
          flat(steps.next.orientation),
          flat(steps.next.velocity),
          flat(steps.next.angular_velocity),
          none,
          none,
          steps.gamma.movedim(0, -2)};
}

const ops::RegisterByTensors registered("rigid", by_tensors);

// u, expanded to [rows, batch..., B, 6]. Throws where a shape does not fit.
Tensor checked_forces(const RigidState& state, const Tensor& u, const RigidScene& scene, const RigidOptions& options,
                      std::int64_t pairs) {
  const std::int64_t bodies = count_of(scene.bodies);
  SymShape batch = checked_batch(scene, options, pairs);
  const auto add = [&](const char* name, const Tensor& x, std::int64_t size) {
    TORCH_CHECK(x.dim() >= 2 && x.sym_size(-2) == bodies && x.sym_size(-1) == size, name, " must be [..., ", bodies,
                ", ", size, "]; got ", x.sym_sizes());
    batch = common(batch, x, 2);
  };
  add("position", state.position, 3);
  add("orientation", state.orientation, 4);
  add("velocity", state.velocity, 3);
  add("angular_velocity", state.angular_velocity, 3);
  TORCH_CHECK(u.dim() >= 3 && u.sym_size(-2) == bodies && u.sym_size(-1) == 6, "u must be [rows, ..., ", bodies,
              ", 6]; got ", u.sym_sizes());
  TORCH_CHECK(u.sym_size(0) >= 1, "a rollout must have at least one step; got ", u.sym_sizes());
  batch = at::infer_size_symdimvector(batch, u.sym_sizes().slice(1, u.dim() - 3));
  Tensor wide = u.to(state.velocity.scalar_type());
  for (std::int64_t k = u.dim() - 3; k < static_cast<std::int64_t>(batch.size()); ++k) wide = wide.unsqueeze(1);
  batch.insert(batch.begin(), u.sym_size(0));
  return expanded_to(wide, batch, {bodies, 6});
}

Tensors list_of(const RigidState& state, const Tensor& u, const RigidScene& scene) {
  Tensors all = {state.position, state.orientation, state.velocity, state.angular_velocity, u, scene.gravity, scene.mu};
  for (const RigidBody& body : scene.bodies) {
    all.insert(all.end(), {body.mass, body.inertia, body.centers, body.radii, body.drag});
  }
  for (const Plane& plane : scene.planes) all.insert(all.end(), {plane.normal, plane.offset});
  all.insert(all.end(), {scene.restitution, scene.stiffness, scene.dissipation});
  all.erase(std::remove_if(all.begin(), all.end(), [](const Tensor& x) { return !x.defined(); }), all.end());
  return all;
}

}  // namespace
}  // namespace scene_rollout

using namespace scene_rollout;  // NOLINT(google-build-using-namespace): of this file

void add_options(double dt, const RigidOptions& options, StepWriter& writer) {
  writer.add("formulation", ops::kInSchema<RigidFormulation>.at(static_cast<std::size_t>(options.formulation)))
      .add("dt", dt)
      .add("bounce_threshold", options.bounce_threshold)
      .add("stabilization", options.stabilization)
      .add("tolerance", options.tolerance.value_or(RigidOptions::kTolerance))
      .add("ties", std::string_view(options.ties));
  if (options.formulation == RigidFormulation::kPolyhedral) {
    writer.add("directions", options.directions.count).add("angle", options.directions.angle);
  }
  if (options.formulation == RigidFormulation::kCompliant) {
    writer.add("sigma", options.regularization.sigma).add("beta", options.regularization.beta);
  }
  if (options.kappa != 0) writer.add("kappa", options.kappa);
}

std::string step_text(const RigidScene& scene, const RigidOptions& options,
                      const std::optional<std::vector<ContactPair>>& known) {
  check_scene(scene, options);
  StepWriter writer("rigid");
  add_options(scene.dt, options, writer);
  std::vector<std::int64_t> balls, plane_bodies, touches, touch_counts, pairs, first_ball = {0};
  for (const RigidBody& body : scene.bodies) {
    balls.push_back(body.radii.sym_size(-1).guard_int(__FILE__, __LINE__));
    first_ball.push_back(first_ball.back() + balls.back());
  }
  for (const Plane& plane : scene.planes) {
    plane_bodies.push_back(plane.body);
    touch_counts.push_back(static_cast<std::int64_t>(plane.touches.size()));
    touches.insert(touches.end(), plane.touches.begin(), plane.touches.end());
  }
  for (const ContactPair& pair : known ? *known : contact_pairs(scene)) {
    const bool is_plane = pair.other == ContactPair::Other::kPlane;
    const std::int64_t behind = is_plane ? 0 : static_cast<std::int64_t>(scene.planes.size());
    pairs.insert(pairs.end(), {pair.body, first_ball[pair.body] + pair.ball, pair.other_body,
                               behind + (is_plane ? 0 : first_ball[pair.other_body]) + pair.index});
  }
  return writer.add("balls", balls)
      .add("plane_bodies", plane_bodies)
      .add("touch_counts", touch_counts)
      .add("touches", touches)
      .add("pairs", pairs)
      .text();
}

RigidScene scene_of(std::string_view text) {
  const StepText step(text);
  RigidScene scene;
  scene.bodies.resize(step.counts("balls").size());
  scene.dt = step.number("dt");
  const std::vector<std::int64_t> touches = step.counts("touches"), counts = step.counts("touch_counts");
  auto next = touches.begin();
  for (const std::int64_t body : step.counts("plane_bodies")) {
    const std::int64_t count = counts.at(scene.planes.size());
    scene.planes.push_back({{}, {}, body, {next, next + count}});
    next += count;
  }
  return scene;
}

RigidOptions options_of(std::string_view text) {
  const StepText step(text);
  RigidOptions options;
  options.formulation = ops::enumerator_named<RigidFormulation>("formulation", step.word("formulation"));
  options.bounce_threshold = step.number_if("bounce_threshold");
  options.stabilization = step.number("stabilization");
  options.tolerance = step.number("tolerance");
  options.ties = std::string(step.word("ties"));
  options.directions = {step.count_if("directions").value_or(FrictionDirections().count),
                        step.number_if("angle").value_or(FrictionDirections().angle)};
  const RegularizationOptions defaults;
  options.regularization = {.sigma = step.number_if("sigma").value_or(defaults.sigma),
                            .beta = step.number_if("beta").value_or(defaults.beta)};
  options.kappa = step.number_if("kappa").value_or(0);
  return options;
}

RigidSteps roll_out(const RigidState& state, const Tensor& u, const RigidScene& scene, const std::string& step,
                    const Tensors& feedback) {
  const StepText text(step);
  const bool is_compliant = text.word("formulation") == "compliant";
  const auto pairs = static_cast<std::int64_t>(text.counts("pairs").size() / 4);
  const Tensors results = ops::roll_out(step, packed(state, u, scene, pairs, is_compliant), feedback);
  const at::ScalarType dtype = state.velocity.scalar_type();
  const std::int64_t bodies = count_of(scene.bodies);
  const auto of_bodies = [&](std::size_t k, std::int64_t size) {
    return results[k].to(dtype).movedim(-2, 0).unflatten(-1, {bodies, size});
  };
  return {{of_bodies(0, 3), of_bodies(1, 4), of_bodies(2, 3), of_bodies(3, 3)},
          results[kGamma].to(dtype).movedim(-2, 0),
          results[kStatus].movedim(-1, 0),
          results[kIterations].movedim(-1, 0)};
}

RigidSolution simulate(const RigidState& state, const Tensor& u, const RigidScene& scene, const std::string& step,
                       std::int64_t substeps, const std::optional<Feedback<RigidState>>& feedback) {
  RigidOptions options = options_of(step);
  options.substeps = substeps;
  const auto pairs = static_cast<std::int64_t>(StepText(step).counts("pairs").size() / 4);
  const Tensor wide = checked_forces(state, u, scene, options, pairs), inputs = checked_inputs(wide, scene, options);
  const Tensor& rows = inputs.is_same(wide) ? u : inputs;
  const Tensor forces = substeps == 1 ? rows : rows.repeat_interleave(substeps, 0);
  const auto roll_out_closed = [&] {
    TORCH_CHECK(can_roll_out({feedback->K, u, state.position, scene.gravity}),
                "feedback must be on the CPU, and so must the scene and its state");
    const Tensor& q = state.orientation;
    const RigidState start = {state.position, q / q.norm(2, -1, true), state.velocity, state.angular_velocity};
    return roll_out(start, forces, scene, step, packed(*feedback, count_of(scene.bodies), u.size(0), substeps));
  };
  const RigidSteps steps = feedback                                 ? roll_out_closed()
                           : can_roll_out(list_of(state, u, scene)) ? roll_out(state, forces, scene, step)
                                                                    : step_by_step(state, forces, scene, options);
  if (substeps == 1) return {steps.next, steps.gamma, steps.status, steps.iterations};
  const auto of_rows = [&](const Tensor& x) { return x.unflatten(0, {-1, substeps}); };
  const auto last = [&](const Tensor& x) { return of_rows(x).select(1, substeps - 1); };
  const Tensor status = of_rows(steps.status), failed = (status != 0).to(at::kByte).argmax(1, true);
  return {{last(steps.next.position), last(steps.next.orientation), last(steps.next.velocity),
           last(steps.next.angular_velocity)},
          of_rows(steps.gamma).sum(1),
          status.gather(1, failed).squeeze(1),
          of_rows(steps.iterations).sum(1)};
}

}  // namespace lcp::physics
