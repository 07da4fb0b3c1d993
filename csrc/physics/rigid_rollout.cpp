#include "physics/rigid_rollout.h"

#include <ATen/ATen.h>
#include <ATen/ExpandUtils.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
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

// Throws where the normal of a plane is not of length 1 and can be read. Returns 0, [...], or NaN where it is not; it
// is undefined where the length is known to be 1.
Tensor checked_length(const Tensor& normal) {
  const c10::NoGradGuard no_grad;
  if (normal.dim() == 1 && normal.device().is_cpu() && normal.scalar_type() == at::kDouble && can_read(normal)) {
    const auto x = normal.accessor<double, 1>();  // operators of tensors would take longer than a step
    if (std::abs(x[0] * x[0] + x[1] * x[1] + x[2] * x[2] - 1) <= kUnitLength) return {};
  }
  const Tensor square = normal.square().sum(-1), all = without_transforms(square);
  const auto fits = [](const Tensor& x) { return (x - 1).abs() <= kUnitLength; };
  TORCH_CHECK(!can_read(all) || fits(all).all().item<bool>(), "the normal of a plane must have length 1; got ",
              all.sqrt());
  return at::where(fits(square), 0, std::numeric_limits<double>::quiet_NaN());
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

// u, [rows, ..., B, 6], or where a parameter is out of its range [rows, batch..., B, 6] with NaN for the elements of
// which it is: a body in flight does not read those of its contacts.
Tensor checked_inputs(const Tensor& u, SymShape batch, const RigidScene& scene, const RigidOptions& options) {
  Tensor checked = u;
  const auto refuse = [&](const Tensor& nan) {
    if (checked.is_same(u)) {
      const auto dims = static_cast<std::int64_t>(batch.size());
      for (std::int64_t k = u.dim() - 3; k < dims; ++k) checked = checked.unsqueeze(1);
      batch.insert(batch.begin(), u.sym_size(0));
      checked = expanded_to(checked, batch, {u.sym_size(-2), 6});
    }
    checked = refused_where_nan(nan, checked, 2);
  };
  const auto check = [&](const Tensor& parameter, const Tensor& in_range, std::int64_t core_dims) {
    if (!in_range.is_same(parameter)) refuse(core_dims == 0 ? in_range : in_range.sum(-1));
  };
  for (const RigidBody& body : scene.bodies) {
    check(body.mass, positive_or_nan(body.mass), 0);
    check(body.radii, nonnegative_or_nan(body.radii), 1);
    if (body.drag.defined()) check(body.drag, nonnegative_or_nan(body.drag), 0);
  }
  for (const Plane& plane : scene.planes) {
    if (const Tensor length = checked_length(plane.normal); length.defined()) refuse(length);
  }
  check(scene.mu, nonnegative_or_nan(scene.mu), 1);
  if (options.formulation == RigidFormulation::kCompliant) {
    check(scene.stiffness, positive_or_nan(scene.stiffness), 1);
    check(scene.dissipation, nonnegative_or_nan(scene.dissipation), 1);
  } else {
    check(scene.restitution, share_or_nan(scene.restitution), 1);
  }
  return checked;
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

Tensor number(const Tensor& x) { return x.scalar_type() == at::kDouble ? x : x.to(at::kDouble); }

// How many dimensions of the tensors of a scene a parameter reads, in the order of rigid::Parameter; it has no trees.
constexpr std::array<std::int64_t, kParameters> kCoreDims = {0, 2, 0, 2, 1, 1, 0, 1, 1, 1, 1, 1};

// x, with its last dimensions, `count` of them, as one.
Tensor as_vector(const Tensor& x, std::int64_t count) {
  if (count == 1) return x;
  return count == 0 ? x.unsqueeze(-1) : x.dim() == 2 && x.is_contiguous() ? x.view(-1) : x.flatten(-2);
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

// The scene of a text with `bodies`, without other tensors, and its options.
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
  const auto steps_last = [](const Tensor& all) { return all.flatten(-2).movedim(0, -2); };
  const Tensor position = steps_last(steps.next.position), none = position.narrow(-1, 0, 0);
  return {position,
          steps_last(steps.next.orientation),
          steps_last(steps.next.velocity),
          steps_last(steps.next.angular_velocity),
          none,
          none,
          steps.gamma.movedim(0, -2)};
}

const ops::RegisterByTensors registered("rigid", by_tensors);

// Throws where a shape does not fit; returns the batch.
SymShape checked_shapes(const RigidState& state, const Tensor& u, const PreparedScene& prepared) {
  const std::int64_t bodies = count_of(prepared.scene().bodies);
  SymShape batch = checked_batch(prepared.scene(), prepared.options(), prepared.pairs());
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
  return at::infer_size_symdimvector(batch, u.sym_sizes().slice(1, u.dim() - 3));
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

PreparedScene::PreparedScene(RigidScene given, RigidOptions given_options,
                             const std::optional<std::vector<ContactPair>>& known, bool keeps)
    : scene_(std::move(given)), options_(std::move(given_options)) {
  check_scene(scene_, options_);
  StepWriter writer("rigid");
  add_options(scene_.dt, options_, writer);
  std::vector<std::int64_t> balls, plane_bodies, touches, touch_counts, pairs, first_ball = {0};
  for (const RigidBody& body : scene_.bodies) {
    balls.push_back(body.radii.sym_size(-1).guard_int(__FILE__, __LINE__));
    first_ball.push_back(first_ball.back() + balls.back());
  }
  for (const Plane& plane : scene_.planes) {
    plane_bodies.push_back(plane.body);
    touch_counts.push_back(static_cast<std::int64_t>(plane.touches.size()));
    touches.insert(touches.end(), plane.touches.begin(), plane.touches.end());
  }
  for (const ContactPair& pair : known ? *known : contact_pairs(scene_)) {
    const bool is_plane = pair.other == ContactPair::Other::kPlane;
    const std::int64_t behind = is_plane ? 0 : static_cast<std::int64_t>(scene_.planes.size());
    pairs.insert(pairs.end(), {pair.body, first_ball[pair.body] + pair.ball, pair.other_body,
                               behind + (is_plane ? 0 : first_ball[pair.other_body]) + pair.index});
  }
  pairs_ = std::ssize(pairs) / 4;
  list_parts();
  text_ = writer.add("balls", balls)
              .add("plane_bodies", plane_bodies)
              .add("touch_counts", touch_counts)
              .add("touches", touches)
              .add("pairs", pairs)
              .text();
  for (std::size_t k = 0; keeps && k < kParameters; ++k) {
    if (!is_constant(k)) continue;
    Tensor copy = find_parameter(k).clone(at::MemoryFormat::Contiguous);
    // Within torch.func and inference modes, which may end before the scene is used again, a copy belongs to them.
    if (can_read(copy) && !copy.is_inference()) kept_[k] = std::move(copy);
  }
}

void PreparedScene::list_parts() {
  for (const RigidBody& body : scene_.bodies) {
    parts_[kMass].push_back(body.mass);
    parts_[kInertia].push_back(body.inertia);
    parts_[kDrag].push_back(body.drag.defined() ? body.drag : at::zeros({}, body.mass.options()));
    parts_[kCenters].push_back(body.centers);
    parts_[kRadii].push_back(body.radii);
  }
  for (const Plane& plane : scene_.planes) {
    parts_[kNormals].push_back(plane.normal);
    parts_[kOffsets].push_back(plane.offset);
  }
  parts_[kGravity] = {scene_.gravity};
  parts_[kMu] = {scene_.mu};
  if (options_.formulation == RigidFormulation::kCompliant) {
    parts_[kStiffness] = {scene_.stiffness};
    parts_[kDissipation] = {scene_.dissipation};
  } else {
    parts_[kRestitution] = {scene_.restitution};
  }
}

Tensor PreparedScene::find_parameter(std::size_t k) const {
  const bool is_of_pairs = k >= kMu && k <= kDissipation;
  Tensors parts;
  for (const Tensor& part : parts_[k]) parts.push_back(as_vector(number(part), kCoreDims[k]));
  if (parts.empty()) {
    return at::zeros({is_of_pairs ? pairs_ : 0}, scene_.gravity.options().dtype(at::kDouble));
  }
  const Tensor whole = joined(parts);
  return is_of_pairs ? expanded_to(whole, common({}, whole, 1), {pairs_}) : whole;
}

Tensors PreparedScene::parameters() const {
  Tensors all;
  for (std::size_t k = 0; k < kParameters; ++k) all.push_back(kept_[k].defined() ? kept_[k] : find_parameter(k));
  return all;
}

bool PreparedScene::is_constant(std::size_t k) const {
  return std::all_of(parts_[k].begin(), parts_[k].end(), [&](const Tensor& x) {
    return x.defined() && can_read(x) && x.device().is_cpu() && x.scalar_type() == at::kDouble &&
           x.dim() == kCoreDims[k] && x.is_contiguous() && !x.requires_grad() && !x._fw_grad(/*level=*/0).defined();
  });
}

bool PreparedScene::has_numbers_of_scene(std::size_t k) const {
  const double* next = kept_[k].const_data_ptr<double>();
  const double* const end = next + kept_[k].numel();
  for (const Tensor& x : parts_[k]) {
    const bool is_one_for_all = k >= kMu && x.numel() == 1;
    const auto* const numbers = x.const_data_ptr<double>();
    for (std::int64_t i = 0; i < (is_one_for_all ? pairs_ : x.numel()); ++i, ++next) {
      // Bits are compared: 0 and -0 differ, and a NaN equals itself.
      if (next == end || std::memcmp(next, numbers + (is_one_for_all ? 0 : i), sizeof(double)) != 0) return false;
    }
  }
  return next == end || parts_[k].empty();
}

bool PreparedScene::is_current() const {
  for (std::size_t k = 0; k < kParameters; ++k) {
    if (is_constant(k)) {
      if (!kept_[k].defined() || !has_numbers_of_scene(k)) return false;
    } else if (kept_[k].defined() || (k == kRadii && scene_.bodies.size() > 1)) {
      return false;  // the pairs of several bodies depend on their radii
    }
  }
  return true;
}

RigidSteps roll_out(const RigidState& state, const Tensor& u, const PreparedScene& scene, const Tensors& feedback,
                    bool is_step) {
  Tensors inputs = scene.parameters();
  for (const Tensor* x : {&state.position, &state.orientation, &state.velocity, &state.angular_velocity}) {
    inputs.push_back(as_vector(number(*x), 2));
  }
  const Tensor none = at::zeros({0}, inputs[kMass].options());
  inputs.insert(inputs.end(), kStateParts - 4, none);  // of joints
  inputs.push_back((u.dim() == 3 ? number(u) : number(u).movedim(0, -3)).flatten(-2));
  const Tensors results = ops::roll_out(scene.text(), inputs, feedback);
  const at::ScalarType dtype = state.velocity.scalar_type();
  const std::int64_t bodies = count_of(scene.scene().bodies);
  // x, [batch..., T, ...], with `dims` dimensions from T on, as [T, batch..., ...] or without its only step.
  const auto of_steps = [&](const Tensor& x, std::int64_t dims) {
    return is_step ? x.select(-dims, 0) : x.dim() == dims ? x : x.movedim(-dims, 0);
  };
  const auto in_dtype = [&](const Tensor& x) { return x.scalar_type() == dtype ? x : x.to(dtype); };
  const auto of_bodies = [&](std::size_t k, std::int64_t size) {
    const Tensor& x = results[k];
    if (is_step && x.dim() == 2) return bodies == 1 ? in_dtype(x) : in_dtype(x).view({bodies, size});
    return of_steps(in_dtype(x), 2).unflatten(-1, {bodies, size});
  };
  return {{of_bodies(0, 3), of_bodies(1, 4), of_bodies(2, 3), of_bodies(3, 3)},
          of_steps(in_dtype(results[kGamma]), 2),
          of_steps(results[kStatus], 1),
          of_steps(results[kIterations], 1)};
}

RigidSolution simulate(const RigidState& state, const Tensor& u, const PreparedScene& prepared,
                       const std::optional<Feedback<RigidState>>& feedback, bool is_step) {
  const RigidScene& scene = prepared.scene();
  const RigidOptions& options = prepared.options();
  const std::int64_t substeps = options.substeps;
  const Tensor rows = checked_inputs(u, checked_shapes(state, u, prepared), scene, options);
  const Tensor forces = substeps == 1 ? rows : rows.repeat_interleave(substeps, 0);
  const bool is_walk = can_roll_out({u, state.position, scene.gravity});
  TORCH_CHECK(is_walk || !feedback, "feedback must be on the CPU, and so must the scene and its state");
  const bool drops_steps = is_step && is_walk && substeps == 1;
  const auto roll_out_closed = [&] {
    const Tensor& q = state.orientation;
    const RigidState start = {state.position, q / q.norm(2, -1, true), state.velocity, state.angular_velocity};
    return roll_out(start, forces, prepared, packed(*feedback, count_of(scene.bodies), u.size(0), substeps),
                    drops_steps);
  };
  const RigidSteps steps = feedback  ? roll_out_closed()
                           : is_walk ? roll_out(state, forces, prepared, {}, drops_steps)
                                     : step_by_step(state, forces, scene, options);
  const auto of_step = [&](const Tensor& x) { return is_step && !drops_steps ? x[0] : x; };
  const auto of_rows = [&](const Tensor& x) { return x.unflatten(0, {-1, substeps}); };
  const auto last = [&](const Tensor& x) { return of_step(substeps == 1 ? x : of_rows(x).select(1, substeps - 1)); };
  const auto sum = [&](const Tensor& x) { return of_step(substeps == 1 ? x : of_rows(x).sum(1)); };
  const auto first_failure = [&](const Tensor& x) {
    return x.gather(1, (x != 0).to(at::kByte).argmax(1, true)).squeeze(1);
  };
  const RigidState& next = steps.next;
  return {{last(next.position), last(next.orientation), last(next.velocity), last(next.angular_velocity)},
          sum(steps.gamma),
          of_step(substeps == 1 ? steps.status : first_failure(of_rows(steps.status))),
          sum(steps.iterations)};
}

}  // namespace lcp::physics
