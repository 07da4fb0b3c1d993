#include "lcp/physics/tripod.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include <Eigen/Core>
#include <algorithm>
#include <array>
#include <utility>

#include "lcp/physics/friction_cone.h"
#include "ops/rollout/rollout.h"
#include "physics/isotropic_friction.h"
#include "physics/stepping.h"
#include "physics/system_rollout.h"

namespace lcp::physics {
namespace {

using at::Tensor;

Tripod in_range(const Tripod& tripod) {
  return {positive_or_nan(tripod.mass),         positive_or_nan(tripod.inertia),    positive_or_nan(tripod.dt),
          nonnegative_or_nan(tripod.mu),        nonnegative_or_nan(tripod.gravity), tripod.supports,
          nonnegative_or_nan(tripod.com_height)};
}

Tripod in_precision_of(at::ScalarType dtype, const Tripod& parameters) {
  const Tripod tripod = in_range(parameters);
  return {tripod.mass.to(dtype),    tripod.inertia.to(dtype),  tripod.dt.to(dtype),        tripod.mu.to(dtype),
          tripod.gravity.to(dtype), tripod.supports.to(dtype), tripod.com_height.to(dtype)};
}

// The arguments of a step, broadcast to one batch shape and converted to one dtype.
struct Arguments {
  Tripod tripod;
  TripodState state;
  Tensor u;
  Shape batch;
};

Shape batch_of(const TripodState& state, at::IntArrayRef inputs, const Tripod& t) {
  return common_shape({leading(state.pose), leading(state.velocity), inputs, t.mass.sizes(), t.inertia.sizes(),
                       t.dt.sizes(), t.mu.sizes(), t.gravity.sizes(), t.com_height.sizes(), leading(t.supports, 2)});
}

Arguments broadcast(const TripodState& state, const Tensor& u, const Tripod& parameters) {
  const auto dtype = state.velocity.scalar_type();
  const Tripod t = in_precision_of(dtype, parameters);
  const Shape batch = batch_of(state, leading(u), t);
  return {{expanded(t.mass, batch), expanded(t.inertia, batch), expanded(t.dt, batch), expanded(t.mu, batch),
           expanded(t.gravity, batch), expanded(t.supports, batch, {kSupports, 2}), expanded(t.com_height, batch)},
          {expanded(state.pose.to(dtype), batch, {3}), expanded(state.velocity, batch, {3})},
          expanded(u.to(dtype), batch, {3}),
          batch};
}

Tensor inputs_of(const TripodState& state, const Tensor& u, const Tripod& tripod) {
  constexpr const char* kExpected = "u must be [steps, ..., 3]";
  TORCH_CHECK(u.dim() >= 2, kExpected, "; got ", u.sizes());
  return expanded_inputs(u.to(state.velocity.scalar_type()), batch_of(state, leading(u).slice(1), tripod), kExpected,
                         {3});
}

// The arms R(theta) r_i from the centre of mass to the supports: [..., 3, 2].
Tensor arms_of(const Tensor& pose, const Tripod& tripod) {
  const Tensor c = pose.select(-1, 2).cos().unsqueeze(-1);
  const Tensor s = pose.select(-1, 2).sin().unsqueeze(-1);
  const Tensor x = tripod.supports.select(-1, 0);
  const Tensor y = tripod.supports.select(-1, 1);
  return vector_of({c * x - s * y, s * x + c * y});
}

Tensor inverse_inertia(const Tripod& tripod) {
  return vector_of({1 / tripod.mass, 1 / tripod.mass, 1 / tripod.inertia});
}

Tensor free_velocity(const Arguments& a) {
  return a.state.velocity + a.tripod.dt.unsqueeze(-1) * inverse_inertia(a.tripod) * a.u;
}

// The largest |v_x| + |v_y| of a support, [...], of a block that moves with this velocity.
Tensor largest_speed(const Tensor& velocity, const Tensor& arms) {
  const Tensor omega = velocity.select(-1, 2).unsqueeze(-1);
  const Tensor v_x = velocity.select(-1, 0).unsqueeze(-1) - omega * arms.select(-1, 1);
  const Tensor v_y = velocity.select(-1, 1).unsqueeze(-1) + omega * arms.select(-1, 0);
  return (v_x.abs() + v_y.abs()).amax(-1);
}

// The loads on the supports, N = rest + shift sum_i f_i for friction forces f_i. They follow from sum_i N_i = m g and
// sum_i N_i arm_i = -h sum_i f_i, where h is the height of the centre of mass.
struct Loads {
  Tensor rest;   // [..., 3]
  Tensor shift;  // [..., 3, 2]
};

Loads loads(const Tensor& arms, const Tripod& tripod) {
  const Tensor x = arms.select(-1, 0);
  const Tensor inverse = at::linalg_inv(matrix_of({at::ones_like(x), x, arms.select(-1, 1)}));
  const Tensor h = tripod.com_height.unsqueeze(-1).unsqueeze(-1);
  return {(tripod.mass * tripod.gravity).unsqueeze(-1) * inverse.select(-1, 0), -h * inverse.slice(-1, 1)};
}

// The moments arm_i x d_j of unit forces along the directions: [..., 3 n].
Tensor moments(const Tensor& arms, const Tensor& D) {
  const Tensor moment =
      arms.select(-1, 0).unsqueeze(-1) * D[1] - arms.select(-1, 1).unsqueeze(-1) * D[0];  // [..., 3, n]
  return moment.flatten(-2);
}

Problem problem_of(const Arguments& a, const Tensor& D) {
  const std::int64_t n = D.size(1);
  const Tensor arms = arms_of(a.state.pose, a.tripod);
  const Loads load = loads(arms, a.tripod);
  const Tensor d = D.repeat({1, kSupports});  // [2, 3 n], for all supports
  const Tensor turn = moments(arms, D);
  const auto square = [](const Tensor& x) { return x.unsqueeze(-1).unsqueeze(-1); };
  const Tensor delassus = square(a.tripod.dt / a.tripod.mass) * at::matmul(d.t(), d) +
                          square(a.tripod.dt / a.tripod.inertia) * (turn.unsqueeze(-1) * turn.unsqueeze(-2));
  const Tensor e = at::eye(kSupports, D.options()).repeat_interleave(n, 1);
  const Tensor shift = load.shift.select(-1, 0).unsqueeze(-1) * d[0] + load.shift.select(-1, 1).unsqueeze(-1) * d[1];
  const Tensor mu = a.tripod.mu.unsqueeze(-1);
  const Tensor top = at::cat({delassus, expanded(e.t(), a.batch, {kSupports * n, kSupports})}, -1);
  const Tensor bottom = at::cat({mu.unsqueeze(-1) * shift - e, at::zeros_like(shift).slice(-1, 0, kSupports)}, -1);
  const Tensor free = free_velocity(a);
  const Tensor slide = along(free, d) + free.select(-1, 2).unsqueeze(-1) * turn;
  return {at::cat({top, bottom}, -2), at::cat({slide, mu * load.rest}, -1)};
}

TripodStep read(const Arguments& a, const Tensor& z, const SolveOptions& options) {
  const std::int64_t n = z.size(-1) / kSupports - 1;
  const Tensor arms = arms_of(a.state.pose, a.tripod);
  const Tensor lambda = z.slice(-1, 0, kSupports * n).unflatten(-1, {kSupports, n});
  const Tensor friction = combined(lambda, friction_directions(n, z.options()));
  const Tensor slip = z.slice(-1, kSupports * n);
  const Tensor moment = arms.select(-1, 0) * friction.select(-1, 1) - arms.select(-1, 1) * friction.select(-1, 0);
  const Tensor force = friction.sum(-2);
  const Tensor wrench = at::cat({force, moment.sum(-1, true)}, -1);
  const Tensor moved = free_velocity(a) + a.tripod.dt.unsqueeze(-1) * inverse_inertia(a.tripod) * wrench;
  const Loads load = loads(arms, a.tripod);
  const Tensor normal = load.rest + (load.shift * force.unsqueeze(-2)).sum(-1);
  // If two supports stick, the whole block is at rest: exactly, and not up to the round-off of its forces. That of z
  // may leave a slip to a support that sticks, since the forces on a block at rest are not unique.
  const Tensor round_off = tie_tolerance({}, z.scalar_type()) * largest_speed(free_velocity(a), arms).unsqueeze(-1);
  const Tensor sticking = (slip <= round_off) & (a.tripod.mu.unsqueeze(-1) * normal > 0);
  const Tensor velocity = held(sticking.sum(-1, true) >= 2, moved, options);
  return {{a.state.pose + a.tripod.dt.unsqueeze(-1) * velocity, velocity}, friction, normal, slip};
}

template <class F>
TripodSolution map(const TripodSolution& s, const F& f) {
  return {{{f(s.step.next.pose), f(s.step.next.velocity)}, f(s.step.friction), f(s.step.normal), f(s.step.slip)},
          f(s.z),
          f(s.residual),
          f(s.status)};
}

// A rollout in operators of tensors.
TripodSolution step_by_step(const TripodState& first, const Inputs& inputs, const Tripod& tripod, const Tensor& D,
                            const SolveOptions& options) {
  const StepFunctions functions{
      [&](const Tensors& now, const Tensor& force, const Tensor& poison) -> Solved {
        const Problem problem = problem_of(broadcast({now[0], now[1]}, force, tripod), D);
        SolveResult result = solve(problem.M, poison.defined() ? problem.q + poison.unsqueeze(-1) : problem.q, options);
        Tensor residual = natural_residual(problem, result.z);  // computed here, since M is different in each step
        return {std::move(result), {std::move(residual)}};
      },
      [&](const Tensors& now, const Tensor& force, const Solved& solved) -> Tensors {
        const TripodStep next = read(broadcast({now[0], now[1]}, force, tripod), solved.result.z, options);
        return {next.next.pose, next.next.velocity};
      }};
  const Rollout all = roll_out({first.pose, first.velocity}, inputs, leading(first.velocity).vec(), functions);
  return map({read(broadcast({all.starts[0], all.starts[1]}, all.u, tripod), all.result.z, options),
              all.result.z.clone(), all.extras[0], all.result.status},
             [&](const Tensor& x) { return with_failures(x, all.failure); });
}

// The numbers of a state of a rollout that are what a step reports: the friction and the normal forces. No step reads
// them.
constexpr std::int64_t kReported = 3 * kSupports;

constexpr const char* kTripod = "tripod";  // the kind of its rollouts

FormulaSystem system_of(const Tripod& tripod, const Tensor& D, const SolveOptions& options) {
  FormulaSystem system;
  system.step = step_writer(kTripod, options).text();
  for (const Tensor& x : {tripod.mass, tripod.inertia, tripod.dt, tripod.mu, tripod.gravity, tripod.com_height}) {
    system.parameters.push_back(x.unsqueeze(-1));
  }
  system.parameters.push_back(tripod.supports.flatten(-2));
  system.D = at::constant_pad_nd(D.repeat({1, kSupports}), {0, kSupports});
  return system;
}

// x_next and z for the inputs of lcp::_rollout.
Tensors tripod_by_tensors(const ops::StepText& step, const Tensors& inputs) {
  const Tensor &parameters = inputs[0], &x = inputs[1], &D = inputs[3];
  const auto parameter = [&](std::int64_t k) { return parameters.select(-1, k); };
  const Tripod tripod{parameter(0), parameter(1), parameter(2),
                      parameter(3), parameter(4), parameters.slice(-1, 6).unflatten(-1, {kSupports, 2}),
                      parameter(5)};
  const std::int64_t directions = D.size(-1) / kSupports - 1;
  const TripodSolution all = step_by_step({x.slice(-1, 0, 3), x.slice(-1, 3, 6)}, inputs[2].movedim(-2, 0), tripod,
                                          D.slice(-1, 0, directions), solve_options_of(step));
  return steps_behind(
      {at::cat({all.step.next.pose, all.step.next.velocity, all.step.friction.flatten(-2), all.step.normal}, -1),
       all.z});
}

const ops::RegisterByTensors registered_tripod(kTripod, tripod_by_tensors);

// Returns where the centre of mass is not above the triangle of the supports, [...]; throws where that can be read.
Tensor check_support(const Tripod& tripod) {
  const Tensor normals = static_normals(tripod);
  if (!can_read(normals)) return (normals < 0).any(-1);
  TORCH_CHECK(!(normals < 0).any().item<bool>(),
              "supports must carry the centre of mass: it must be above their triangle; the smallest load is ",
              normals.min().item<double>(), " N");
  return {};
}

// A rollout is certified in parts whose matrices have at most this number of entries, which bounds the memory (32 MiB
// in float64).
constexpr std::int64_t kMaxCertifiedEntries = 1 << 22;

// Certifies some steps of a rollout, which begin at `start` and have these inputs.
RolloutCertificate certify_part(const TripodState& start, const Tensor& inputs, const Tripod& tripod,
                                std::int64_t directions, const TripodSolution& rollout,
                                std::optional<double> tolerance) {
  const Problem problem = polyhedral_problem(start, inputs, tripod, directions);
  const double accuracy = tie_tolerance(tolerance, start.velocity.scalar_type());
  const auto kinked = [&](const Tensor& ties) {
    const TripodStep& now = rollout.step;
    const std::int64_t forces = kSupports * directions;
    const Tensor pairs = at::cat(
        {ties.slice(-1, 0, forces).unflatten(-1, {kSupports, directions}), ties.slice(-1, forces).unsqueeze(-1)}, -1);
    const Tensor limit = tripod.mu.to(now.normal.scalar_type()).unsqueeze(-1) * now.normal;
    const Tensor each = kinked_friction(pairs, polygon_size(now.friction, directions), limit, now.slip, accuracy);
    // The forces on a block at rest are not unique. They are strictly within the friction cones exactly if slightly
    // less friction holds the block, too.
    Tripod smoother = tripod;
    smoother.mu = tripod.mu * (1 - std::max(accuracy, 1e-6));
    const Tensor resting = (now.next.velocity == 0).all(-1);
    const Tensor less = step(start, inputs, smoother, directions).step.next.velocity;
    const Tensor held_by_less = (less == 0).all(-1);
    return at::where(resting, ~held_by_less, each.any(-1));
  };
  return certify_steps(problem, rollout.z, rollout.status, {tolerance, kinked, {}});
}

}  // namespace

Tripod Tripod::of(double mass, double inertia, double dt, double mu, double gravity, double com_height) {
  return {positive_parameter("mass", mass),
          positive_parameter("inertia", inertia),
          positive_parameter("dt", dt),
          nonnegative_parameter("mu", mu),
          nonnegative_parameter("gravity", gravity),
          at::tensor({0.045, 0.0, -0.03, 0.035, -0.03, -0.035}, at::kDouble).view({kSupports, 2}),
          nonnegative_parameter("com_height", com_height)};
}

Tensor static_normals(const Tripod& tripod) {
  const Tensor x = tripod.supports.select(-1, 0);
  const Tensor y = tripod.supports.select(-1, 1);
  const auto edge = [](const Tensor& a, std::int64_t i) { return a.select(-1, i) - a.select(-1, 0); };
  const Tensor area = edge(x, 1) * edge(y, 2) - edge(x, 2) * edge(y, 1);
  TORCH_CHECK(!can_read(area) || !(area == 0).any().item<bool>(), "supports must not lie on a line; got ",
              tripod.supports);
  return loads(tripod.supports, tripod).rest;
}

TripodState exact_step(const TripodState& state, const Tensor& u, const Tripod& parameters) {
  const c10::NoGradGuard no_grad;
  const Arguments a = broadcast({state.pose, state.velocity.to(at::kDouble)}, u, parameters);
  const Tensor arms = arms_of(a.state.pose, a.tripod);
  const Loads load = loads(arms, a.tripod);
  const Tensor points = arms.contiguous().view({-1, kSupports, 2});
  const Tensor free = free_velocity(a).contiguous().view({-1, 3});
  const Tensor inertia = (1 / inverse_inertia(a.tripod)).contiguous().view({-1, 3});
  const Tensor rest = load.rest.contiguous().view({-1, kSupports});
  const Tensor shift = load.shift.contiguous().view({-1, kSupports, 2});
  const Tensor mu = a.tripod.mu.reshape(-1);
  const Tensor dt = a.tripod.dt.reshape(-1);
  Tensor velocity = at::empty_like(free);
  for (std::int64_t b = 0; b < free.size(0); ++b) {
    using Rows = Eigen::Matrix<double, kSupports, 2, Eigen::RowMajor>;
    using Vector = Eigen::Vector3d;
    const Eigen::Map<const Rows> arm(points[b].const_data_ptr<double>());
    std::array<SupportJacobian, kSupports> J;
    for (std::int64_t i = 0; i < kSupports; ++i) J[static_cast<std::size_t>(i)] << 1, 0, -arm(i, 1), 0, 1, arm(i, 0);
    const Vector start(free[b].const_data_ptr<double>());
    const Vector diagonal(inertia[b].const_data_ptr<double>());
    const Vector at_rest(rest[b].const_data_ptr<double>());
    const Eigen::Map<const Rows> shifted(shift[b].const_data_ptr<double>());
    Vector nu = start;
    Vector normal = at_rest;
    bool converged = false;
    for (int iteration = 0; iteration < 100 && !converged; ++iteration) {
      const Vector limits = dt[b].item<double>() * mu[b].item<double>() * normal.cwiseMax(0);
      nu = isotropic_friction_step(start, diagonal, J, limits);
      const Eigen::Vector2d f = (diagonal[0] * (nu - start) / dt[b].item<double>()).head<2>();
      const Vector next = at_rest + shifted * f;
      converged = (next - normal).norm() <= 1e-12 * at_rest.norm();
      normal = next;
    }
    Eigen::Map<Vector>(velocity[b].data_ptr<double>()) = nu;
  }
  velocity = velocity.view_as(a.state.velocity);
  return {a.state.pose + a.tripod.dt.unsqueeze(-1) * velocity, velocity};
}

Problem polyhedral_problem(const TripodState& state, const Tensor& u, const Tripod& tripod, std::int64_t directions) {
  return problem_of(broadcast(state, u, tripod), friction_directions(directions, state.velocity.options()));
}

TripodStep read_polyhedral(const TripodState& state, const Tensor& u, const Tensor& z, const Tripod& tripod,
                           const SolveOptions& options) {
  return read(broadcast(state, u, tripod), z, options);
}

TripodSolution step(const TripodState& state, const Tensor& u, const Tripod& tripod, std::int64_t directions,
                    const SolveOptions& options) {
  return map(simulate(state, u.unsqueeze(0), tripod, directions, options), [](const Tensor& all) { return all[0]; });
}

TripodSolution simulate(const TripodState& state, const Tensor& u, const Tripod& parameters, std::int64_t directions,
                        const SolveOptions& solve_options, const std::optional<Feedback<TripodState>>& feedback) {
  const Tripod tripod = in_range(parameters);
  const Tensor tips = check_support(tripod);
  check_ties(solve_options.ties);
  const SolveOptions options = held_by_ties(solve_options);
  Inputs inputs = with_feedback(inputs_of(state, u, tripod), feedback, 3, "pose of the reference");
  const Shape batch = leading(inputs.u).slice(1).vec();
  const TripodState first{expanded(state.pose.to(state.velocity.scalar_type()), batch, {3}),
                          expanded(state.velocity, batch, {3})};
  const Tensor D = friction_directions(directions, state.velocity.options());
  const FormulaSystem system = system_of(tripod, D, options);
  const Tensor none = expanded(at::zeros({kReported}, state.velocity.options()), batch, {kReported});
  const Tensor x = at::cat({first.pose, first.velocity, none}, -1);
  if (tips.defined()) inputs.u = refused_where(tips, inputs.u);
  if (!can_roll_out(system, x, inputs.u, options)) return step_by_step(first, inputs, tripod, D, options);
  const SystemSteps all = roll_out(system, x, inputs);
  const auto part = [&](std::int64_t begin, std::int64_t end) { return all.x_next.slice(-1, begin, end); };
  const std::int64_t friction = 6, normal = friction + 2 * kSupports;
  return {{{part(0, 3), part(3, 6)},
           part(friction, normal).unflatten(-1, {kSupports, 2}),
           part(normal, normal + kSupports),
           all.z.slice(-1, kSupports * directions)},
          all.z.clone(),
          all.residual,
          all.status};
}

RolloutCertificate certify_rollout(const TripodState& state, const Tensor& u, const Tripod& tripod,
                                   std::int64_t directions, const TripodSolution& rollout,
                                   std::optional<double> tolerance) {
  const c10::NoGradGuard no_grad;
  const TripodState starts{starts_of(state.pose, rollout.step.next.pose),
                           starts_of(state.velocity, rollout.step.next.velocity)};
  const Tensor inputs = inputs_of(state, u, tripod);
  // The steps have different matrices, which are not all kept at the same time.
  const std::int64_t n = rollout.z.size(-1);
  const std::int64_t problems = std::max<std::int64_t>(1, rollout.status[0].numel());
  const std::int64_t length = std::max<std::int64_t>(1, kMaxCertifiedEntries / (problems * n * n));
  RolloutCertificate sum;
  for (std::int64_t first = 0; first < inputs.size(0); first += length) {
    const auto some = [&](const Tensor& x) { return x.slice(0, first, first + length); };
    const RolloutCertificate part = certify_part({some(starts.pose), some(starts.velocity)}, some(inputs), tripod,
                                                 directions, map(rollout, some), tolerance);
    sum = first == 0 ? part
                     : RolloutCertificate{sum.unsolved + part.unsolved, sum.tied + part.tied, sum.kinked + part.kinked};
  }
  return sum;
}

}  // namespace lcp::physics
