#include "lcp/physics/planar_block.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include <limits>
#include <utility>

#include "lcp/physics/friction_cone.h"
#include "ops/rollout/rollout.h"
#include "physics/lcs_rollout.h"
#include "physics/stepping.h"
#include "physics/system_rollout.h"

namespace lcp::physics {
namespace {

using at::Tensor;
using Formulation = PlanarBlockFormulation;

PlanarBlock in_precision_of(const Tensor& v, const PlanarBlock& block) {
  return {positive_or_nan(block.mass.to(v)), positive_or_nan(block.dt.to(v)), nonnegative_or_nan(block.mu.to(v)),
          nonnegative_or_nan(block.gravity.to(v))};
}

Tensor free_velocity(const Tensor& v, const Tensor& u, const PlanarBlock& block) {
  return v + (block.dt / block.mass).unsqueeze(-1) * u.to(v);
}

Tensor friction_speed(const PlanarBlock& block) { return block.dt * block.mu * block.gravity; }

Tensor force_of(const Tensor& v_next, const Tensor& free, const PlanarBlock& block) {
  return (block.mass / block.dt).unsqueeze(-1) * (v_next - free);
}

// a / |a|; where a = 0 it is 0, with the derivative 0.
Tensor direction_of(const Tensor& a) {
  const Tensor zero = (a == 0).all(-1, true);
  return at::where(zero, 0, a / at::where(zero, 1, a).norm(2, -1, true));
}

// d_i.a, [..., n]. It is exactly 0 where a is perpendicular to d_i up to rounding, so that then the pairs of both d_i
// and -d_i are tied.
Tensor projections(const Tensor& a, const Tensor& D) {
  const double epsilon =
      a.scalar_type() == at::kDouble ? std::numeric_limits<double>::epsilon() : std::numeric_limits<float>::epsilon();
  const Tensor x = along(a, D);
  const Tensor rounding = at::where(x.abs() <= 8 * epsilon * a.norm(2, -1, true), x, 0).detach();
  return x - rounding;
}

// max(d_i.t, 0), [..., n]: the reduction of the velocity along d_i by friction, over S, for a sliding direction t. It
// is 1 for t = 0.
Tensor resistance(const Tensor& t, const Tensor& D) {
  return at::where((t == 0).all(-1, true), 1, positive_part(projections(t, D)));
}

Tensor direction_vector(const Tensor& free, const Tensor& resisting, const PlanarBlock& block, const Tensor& D) {
  const Tensor limit = friction_speed(block).unsqueeze(-1);
  return (block.mass / block.dt).unsqueeze(-1) * (limit * resisting - projections(free, D));
}

// v_next. Where the block sticks, the pairs of directions perpendicular to v* may be tied, but the derivative is 0.
Tensor decoded(const Tensor& z, const PlanarBlock& block, const Tensor& D, const SolveOptions& options) {
  const Tensor sticks = (z == 0).all(-1, true) & (friction_speed(block) > 0).unsqueeze(-1);
  return held(sticks, combined(z, D) * (4.0 / static_cast<double>(D.size(1))), options);
}

Tensor direction_matrix(const PlanarBlock& block, const Tensor& D) {
  return (block.mass / block.dt).unsqueeze(-1).unsqueeze(-1) * at::eye(D.size(1), D.options());
}

Tensor polyhedral_matrix(const PlanarBlock& block, const Tensor& D) {
  const Tensor c = (block.dt / block.mass).unsqueeze(-1).unsqueeze(-1);
  const Tensor e = at::ones({D.size(1), 1}, D.options());
  const Tensor cone = at::cat({at::cat({at::zeros({D.size(1), D.size(1)}, D.options()), e}, 1),
                               at::cat({-e.t(), at::zeros({1, 1}, D.options())}, 1)});
  return c * at::constant_pad_nd(at::matmul(D.t(), D), {0, 1, 0, 1}) + cone;
}

Tensor polyhedral_vector(const Tensor& free, const PlanarBlock& block, const Tensor& D) {
  const Tensor limit = block.mu * block.mass * block.gravity;
  const Tensor projections = along(free, D);
  const auto batch = at::infer_size(limit.sizes(), projections.sizes().slice(0, projections.dim() - 1));
  auto wide = batch;
  wide.push_back(D.size(1));
  return at::cat({projections.expand(wide), limit.expand(batch).unsqueeze(-1)}, -1);
}

// The same as a linear complementarity system with the state v and the input u.
LinearComplementaritySystem polyhedral_system(const PlanarBlock& block, const Tensor& M, const Tensor& D) {
  const std::int64_t n = D.size(1);
  const Tensor c = (block.dt / block.mass).unsqueeze(-1).unsqueeze(-1);
  const Tensor limit = block.mu * block.mass * block.gravity;
  const Tensor along_directions = at::constant_pad_nd(D.t(), {0, 0, 0, 1});  // [n + 1, 2]
  const Tensor none = at::zeros({2, 2}, D.options());
  std::vector<std::int64_t> cone(n, n);
  cone.push_back(-1);
  return {.A = none,
          .B = none,
          .D = at::zeros({2, n + 1}, D.options()),
          .G = at::constant_pad_nd(D * (2.0 / static_cast<double>(n)), {0, 1}),
          .d = at::zeros({2}, D.options()),
          .E = along_directions,
          .H = c * along_directions,
          .M = M,
          .q = at::constant_pad_nd(limit.unsqueeze(-1), {n, 0}),
          .cone = cone};
}

Tensor polyhedral_velocity(const Tensor& z, const Tensor& w, const Tensor& D, const SolveOptions& options) {
  const std::int64_t n = D.size(1);
  return held(sticks(z, w).unsqueeze(-1), combined(w.slice(-1, 0, n), D) * (2.0 / static_cast<double>(n)), options);
}

PlanarBlockStep read(const Tensor& z, const Tensor& w, const Tensor& D, const SolveOptions& options) {
  return {polyhedral_velocity(z, w, D, options), combined(z.slice(-1, 0, D.size(1)), D)};
}

void check(const PlanarBlockOptions& options) {
  TORCH_CHECK(options.max_passes >= 1, "max_passes must be >= 1; got ", options.max_passes);
  const double tolerance = options.direction_tolerance.value_or(0);
  TORCH_CHECK(tolerance >= 0, "direction_tolerance must be >= 0; got ", tolerance);
}

double direction_tolerance(const PlanarBlockOptions& options, at::ScalarType dtype) {
  return options.direction_tolerance.value_or(dtype == at::kDouble ? 1e-12 : 1e-5);
}

// x without the NaN of elements that failed, as in Rollout.
Tensor finite_part(const Tensor& x, const Tensor& status) { return at::where((status != 0).unsqueeze(-1), 0, x); }

class PlanarBlockStepper {
 public:
  PlanarBlockStepper(const Tensor& v, const PlanarBlock& block, const PlanarBlockOptions& options,
                     const SolveOptions& solve_options)
      : block_(in_precision_of(v, block)),
        options_(options),
        solve_options_(solve_options),
        D_(friction_directions(options.directions, v.options())),
        M_(polyhedral() ? polyhedral_matrix(block_, D_) : direction_matrix(block_, D_)) {
    check(options);
    check_ties(solve_options.ties);
    if (polyhedral()) {
      solve_options_ = held_by_ties(solve_options);
    } else if (solve_options.kappa == 0) {
      solve_options_.ties = "midpoint";
    }
  }

  bool polyhedral() const { return options_.formulation == Formulation::kPolyhedral; }
  Tensor free(const Tensor& v, const Tensor& u) const { return free_velocity(v, u, block_); }

  // The problem for a frictionless velocity and an assumed sliding direction t.
  Problem problem(const Tensor& free, const Tensor& t) const {
    return {M_,
            polyhedral() ? polyhedral_vector(free, block_, D_) : direction_vector(free, resistance(t, D_), block_, D_)};
  }

  // The extras are the direction, the number of passes, and whether they converged.
  Solved solve(const Tensor& v, const Tensor& free, const Tensor& poison) const {
    switch (options_.formulation) {
      case Formulation::kExactDirection:
        return {with_direction(free, direction_of(free), poison), reports(direction_of(free))};
      case Formulation::kFixedPoint:
        return fixed_point(v, free, poison);
      case Formulation::kPolyhedral: {
        const Tensor none = at::zeros_like(free);
        return {with_direction(free, none, poison), reports(none)};
      }
    }
    unknown_formulation();
  }

  const PlanarBlock& block() const { return block_; }
  const Tensor& D() const { return D_; }
  const SolveOptions& solve_options() const { return solve_options_; }

  // The rollout of the polyhedral formulation.
  LcsRollout rolled_out(const Tensor& v, const Inputs& inputs) const {
    return roll_out(polyhedral_system(block_, M_, D_), v, inputs, solve_options_);
  }

  // The direction, one pass, and that it converged.
  static Tensors reports(const Tensor& t) {
    const Tensor passes = at::ones(leading(t), t.options().dtype(at::kLong));
    return {t, passes, at::ones_like(passes, at::kBool)};
  }

  PlanarBlockSolution read_rollout(const LcsRollout& all) const {
    const Tensor none = (0 * all.residual).unsqueeze(-1).expand_as(all.x_next);  // NaN where there is no solution
    const Tensors reports = PlanarBlockStepper::reports(none);
    return {{{all.x_next, combined(all.z.slice(-1, 0, D_.size(1)), D_)}, all.z, all.residual, all.status},
            reports[0],
            reports[1],
            reports[2]};
  }

  PlanarBlockStep read(const Tensor& free, const SolveResult& result) const {
    if (polyhedral()) return physics::read(result.z, result.w, D_, solve_options_);
    const Tensor v_next = velocity(result);
    return {v_next, force_of(v_next, free, block_)};
  }

  Tensor velocity(const SolveResult& result) const {
    return polyhedral() ? polyhedral_velocity(result.z, result.w, D_, solve_options_)
                        : decoded(result.z, block_, D_, solve_options_);
  }

  // Whether max(d_i.t, 0) has a kink at t for some z_i > 0, or the block starts from rest, where dir(v) jumps.
  Tensor kinked_guess(const Tensor& v, const Tensor& u, const Tensor& t, const Tensor& z) const {
    const Tensor starting = (v == 0).all(-1) & (free(v, u) != 0).any(-1);
    return ((projections(t, D_) == 0) & (z > 0)).any(-1) | starting;
  }

  // The sum of the absolute values of the terms of q: [..., 1].
  Tensor terms(const Tensor& v, const Tensor& u) const {
    const Tensor speed = v.norm(2, -1) + block_.dt / block_.mass * u.norm(2, -1) + friction_speed(block_);
    return (block_.mass / block_.dt * speed).unsqueeze(-1);
  }

 private:
  SolveResult with_direction(const Tensor& free, const Tensor& t, const Tensor& poison) const {
    Tensor q = problem(free, t).q;
    if (poison.defined()) q = q + poison.unsqueeze(-1);
    return lcp::solve(M_, q, solve_options_);
  }

  Solved fixed_point(const Tensor& v, const Tensor& free, const Tensor& poison) const {
    const double tolerance = direction_tolerance(options_, v.scalar_type());
    Tensor t = direction_of(at::where((v == 0).all(-1, true), free, v));
    SolveResult result = with_direction(free, t, poison);
    Tensor next = improved(t, result);
    Tensor converged = unchanged(t, next, tolerance);
    Tensor passes = at::ones_like(converged, at::kLong);
    for (std::int64_t pass = 1; pass < options_.max_passes; ++pass) {
      // An element that has converged or failed keeps its direction, so that no element depends on the others.
      const Tensor continues = ~converged & (result.status == 0);
      if (!may_be_true(continues)) break;
      t = at::where(continues.unsqueeze(-1), next, t);
      result = with_direction(free, t, poison);
      next = improved(t, result);
      passes = passes + continues;
      converged = converged | unchanged(t, next, tolerance);
    }
    const Tensor succeeded = converged & (result.status == 0);
    if (options_.max_passes > 1 && at::GradMode::is_enabled()) {
      // One more solve gives the derivative of the fixed point, which is t = dir(v*).
      const Tensor fixed = direction_of(free);
      const Tensor moving = (result.z != 0).any(-1);
      t = at::where((succeeded & moving).unsqueeze(-1), t.detach() + (fixed - fixed.detach()), t);
      result = with_direction(free, t, poison);
    }
    return {std::move(result), {t, passes, succeeded}};
  }

  Tensor improved(const Tensor& t, const SolveResult& result) const {
    const Tensor v_next = decoded(finite_part(result.z, result.status), block_, D_, solve_options_);
    const Tensor moving = options_.relaxed ? v_next + friction_speed(block_).unsqueeze(-1) * t : v_next;
    return at::where((moving == 0).all(-1, true), t, direction_of(moving));  // a block that sticks keeps its direction
  }

  static Tensor unchanged(const Tensor& t, const Tensor& next, double tolerance) {
    const c10::NoGradGuard no_grad;
    return (next - t).norm(2, -1) <= tolerance;
  }

  PlanarBlock block_;
  PlanarBlockOptions options_;
  SolveOptions solve_options_;
  Tensor D_;
  Tensor M_;
};

template <class F>
PlanarBlockSolution map(const PlanarBlockSolution& s, const F& f) {
  return {{{f(s.step.v_next), f(s.step.force)}, f(s.z), f(s.residual), f(s.status)},
          f(s.direction),
          f(s.passes),
          f(s.converged)};
}

// A rollout in operators of tensors.
PlanarBlockSolution step_by_step(const Tensor& first, const Inputs& inputs, const PlanarBlockStepper& stepper) {
  const StepFunctions functions{[&](const Tensors& state, const Tensor& now, const Tensor& poison) {
                                  return stepper.solve(state[0], stepper.free(state[0], now), poison);
                                },
                                [&](const Tensors&, const Tensor&, const Solved& solved) -> Tensors {
                                  return {stepper.velocity(solved.result)};
                                }};
  const Rollout all = roll_out({first}, inputs, leading(first).vec(), functions);
  const Tensor free = stepper.free(all.starts[0], all.u);
  const PlanarBlockSolution solution{
      {stepper.read(free, all.result), all.result.z,
       natural_residual(stepper.problem(free, all.extras[0]), all.result.z), all.result.status},
      all.extras[0],
      all.extras[1],
      all.extras[2]};
  return map(solution, [&](const Tensor& x) { return with_failures(x, all.failure); });
}

// How many numbers of a state of a rollout are what a step reports: the friction, the direction, and for the
// fixed-point scheme the passes and whether they converged. No step reads them.
std::int64_t reported(const PlanarBlockOptions& options) {
  return options.formulation == Formulation::kFixedPoint ? 6 : 4;
}

// The kinds of rollouts of the formulations with a sliding direction.
constexpr const char *kByFixedPoint = "planar_block_by_fixed_point", *kByExactDirection = "planar_block_by_direction";

FormulaSystem system_of(const PlanarBlockStepper& stepper, const PlanarBlockOptions& options) {
  const bool is_fixed_point = options.formulation == Formulation::kFixedPoint;
  const PlanarBlock& block = stepper.block();
  FormulaSystem system;
  for (const Tensor& x : {block.mass, block.dt, block.mu, block.gravity}) system.parameters.push_back(x.unsqueeze(-1));
  ops::StepWriter writer = step_writer(is_fixed_point ? kByFixedPoint : kByExactDirection, stepper.solve_options());
  if (is_fixed_point) {
    const double tolerance = direction_tolerance(options, block.mass.scalar_type());
    writer.add("max_passes", options.max_passes).add("relaxed", std::int64_t{options.relaxed});
    writer.add("direction_tolerance", tolerance);
    system.parameters.push_back(
        constants({static_cast<double>(options.max_passes), tolerance, options.relaxed ? 1. : 0.}, at::kDouble));
  }
  system.step = writer.text();
  system.D = stepper.D();
  return system;
}

// x_next and z for the inputs of lcp::_rollout.
Tensors planar_block_by_tensors(const ops::StepText& step, const Tensors& inputs) {
  const auto parameter = [&](std::int64_t k) { return inputs[0].select(-1, k); };
  const PlanarBlock block{parameter(0), parameter(1), parameter(2), parameter(3)};
  const Tensor first = inputs[1].slice(-1, 0, 2);
  PlanarBlockOptions options;
  options.directions = inputs[3].size(-1);
  if (step.kind() == kByFixedPoint) {
    options.formulation = Formulation::kFixedPoint;
    options.max_passes = step.count("max_passes");
    options.relaxed = step.count("relaxed") != 0;
    options.direction_tolerance = step.number("direction_tolerance");
  }
  const PlanarBlockSolution all =
      step_by_step(first, inputs[2].movedim(-2, 0), {first, block, options, solve_options_of(step)});
  Tensors next = {all.step.v_next, all.step.force, all.direction};
  if (options.formulation == Formulation::kFixedPoint) {
    for (const Tensor& report : {all.passes, all.converged})
      next.push_back(report.to(first.scalar_type()).unsqueeze(-1));
  }
  return steps_behind({at::cat(next, -1), all.z});
}

const ops::RegisterByTensors registered_fixed_point(kByFixedPoint, planar_block_by_tensors),
    registered_direction(kByExactDirection, planar_block_by_tensors);

PlanarBlockSolution read(const SystemSteps& all, const PlanarBlockOptions& options) {
  const auto part = [&](std::int64_t begin) { return all.x_next.slice(-1, begin, begin + 2); };
  Tensor passes = at::ones_like(all.status, at::kLong), converged = at::ones_like(all.status, at::kBool);
  if (options.formulation == Formulation::kFixedPoint) {
    const Tensor reports = part(6).detach();
    passes = at::where(all.status == 0, reports.select(-1, 0), 1).to(at::kLong);
    converged = reports.select(-1, 1) == 1;
  }
  return {{{part(0), part(2)}, all.z, all.residual, all.status}, part(4), passes, converged};
}

Tensor inputs_of(const Tensor& v, const Tensor& u, const PlanarBlock& block) {
  constexpr const char* kExpected = "u must be [steps, ..., 2]";
  TORCH_CHECK(u.dim() >= 2, kExpected, "; got ", u.sizes());
  const Shape batch = common_shape(
      {leading(v), leading(u).slice(1), block.mass.sizes(), block.dt.sizes(), block.mu.sizes(), block.gravity.sizes()});
  return expanded_inputs(u.to(v.scalar_type()), batch, kExpected, {2});
}

}  // namespace

PlanarBlock PlanarBlock::of(double mass, double dt, double mu, double gravity) {
  return {positive_parameter("mass", mass), positive_parameter("dt", dt), nonnegative_parameter("mu", mu),
          nonnegative_parameter("gravity", gravity)};
}

PlanarBlockStep exact_step(const Tensor& v, const Tensor& u, const PlanarBlock& parameters) {
  const PlanarBlock block = in_precision_of(v, parameters);
  const Tensor free = free_velocity(v, u, block);
  const Tensor resting = (free == 0).all(-1, true);
  const Tensor speed = at::where(resting, 1, free).norm(2, -1, true);
  const Tensor v_next = at::where(resting, 0, free * positive_part(1 - friction_speed(block).unsqueeze(-1) / speed));
  return {v_next, force_of(v_next, free, block)};
}

Problem direction_problem(const Tensor& v, const Tensor& u, const Tensor& t, const PlanarBlock& parameters,
                          std::int64_t directions) {
  const PlanarBlock block = in_precision_of(v, parameters);
  const Tensor D = friction_directions(directions, v.options());
  return {direction_matrix(block, D),
          direction_vector(free_velocity(v, u, block), resistance(t.to(v.scalar_type()), D), block, D)};
}

PlanarBlockStep read_direction(const Tensor& v, const Tensor& u, const Tensor& z, const PlanarBlock& parameters,
                               const SolveOptions& options) {
  const PlanarBlock block = in_precision_of(v, parameters);
  const Tensor v_next = decoded(z, block, friction_directions(z.size(-1), z.options()), options);
  return {v_next, force_of(v_next, free_velocity(v, u, block), block)};
}

Problem polyhedral_problem(const Tensor& v, const Tensor& u, const PlanarBlock& parameters, std::int64_t directions) {
  const PlanarBlock block = in_precision_of(v, parameters);
  const Tensor D = friction_directions(directions, v.options());
  return {polyhedral_matrix(block, D), polyhedral_vector(free_velocity(v, u, block), block, D)};
}

PlanarBlockStep read_polyhedral(const Tensor& z, const Tensor& w, const SolveOptions& options) {
  return read(z, w, friction_directions(z.size(-1) - 1, z.options()), options);
}

Problem polyhedral_problem(const Tensor& v, const Tensor& u, const PlanarBlock& parameters, const Tensor& D) {
  TORCH_CHECK(D.dim() >= 2 && D.size(-2) == 2 && D.size(-1) > 0, "D must be [..., 2, n] with n > 0; got ", D.sizes());
  const PlanarBlock block = in_precision_of(v, parameters);
  const Tensor gram = (D.unsqueeze(-1) * D.unsqueeze(-2)).sum(-3);  // D'D
  const Tensor c = (block.dt / block.mass).unsqueeze(-1).unsqueeze(-1);
  const Tensor e = at::ones_like(D.select(-2, 0));
  const Tensor cone = at::constant_pad_nd(e.unsqueeze(-1), {D.size(-1), 0, 0, 1}) -
                      at::constant_pad_nd(e.unsqueeze(-2), {0, 1, D.size(-1), 0});
  const Tensor free_along = (free_velocity(v, u, block).unsqueeze(-1) * D).sum(-2);
  const Tensor limit = (block.mu * block.mass * block.gravity).unsqueeze(-1);
  // No sizes of batches are read, so that a program may record these operators for all of them.
  const auto wide = at::broadcast_tensors({free_along, limit});
  return {at::constant_pad_nd(c * gram, {0, 1, 0, 1}) + cone, at::cat({wide[0], wide[1].slice(-1, 0, 1)}, -1)};
}

PlanarBlockStep read_polyhedral(const Tensor& z, const Tensor& w, const Tensor& v, const Tensor& u,
                                const PlanarBlock& parameters, const Tensor& D) {
  const PlanarBlock block = in_precision_of(v, parameters);
  const Tensor force = (D * z.slice(-1, 0, D.size(-1)).unsqueeze(-2)).sum(-1);
  const Tensor v_next = free_velocity(v, u, block) + (block.dt / block.mass).unsqueeze(-1) * force;
  return {held((sticks(z, w) & span_plane(D)).unsqueeze(-1), v_next, {}), force};
}

PlanarBlockSolution step(const Tensor& v, const Tensor& u, const PlanarBlock& block, const PlanarBlockOptions& options,
                         const SolveOptions& solve_options) {
  return map(simulate(v, u.unsqueeze(0), block, options, solve_options), [](const Tensor& all) { return all[0]; });
}

PlanarBlockSolution simulate(const Tensor& v, const Tensor& u, const PlanarBlock& block,
                             const PlanarBlockOptions& options, const SolveOptions& solve_options,
                             const std::optional<Feedback<Tensor>>& feedback) {
  const PlanarBlockStepper stepper(v, block, options, solve_options);
  const Inputs inputs = with_feedback(inputs_of(v, u, block), feedback, 2);
  const Tensor first = expanded(v, leading(inputs.u).slice(1).vec(), {2});
  if (stepper.polyhedral()) {
    if (can_roll_out(solve_options)) return stepper.read_rollout(stepper.rolled_out(first, inputs));
    return step_by_step(first, inputs, stepper);
  }
  const FormulaSystem system = system_of(stepper, options);
  const Tensor x = at::constant_pad_nd(first, {0, reported(options)});
  if (!can_roll_out(system, x, inputs.u, stepper.solve_options())) return step_by_step(first, inputs, stepper);
  return read(roll_out(system, x, inputs), options);
}

RolloutCertificate certify_rollout(const Tensor& v, const Tensor& u, const PlanarBlock& block,
                                   const PlanarBlockOptions& options, const PlanarBlockSolution& rollout,
                                   std::optional<double> tolerance) {
  const PlanarBlockStepper stepper(v, block, options, {});
  const Tensor inputs = inputs_of(v, u, block);
  const Tensor start = starts_of(v, rollout.step.v_next);
  const Problem problem = stepper.problem(stepper.free(start, inputs), rollout.direction);
  if (stepper.polyhedral()) {
    const auto kinked = [&](const Tensor& ties) {
      return kinked_friction(ties, polygon_size(rollout.step.force, options.directions), problem.q.select(-1, -1),
                             rollout.z.select(-1, -1), tie_tolerance(tolerance, v.scalar_type()));
    };
    return certify_steps(problem, rollout.z, rollout.status, {tolerance, kinked, {}});
  }
  const auto kinked = [&](const Tensor& ties) {
    // With t = dir(v*), v_next is smooth where the pairs of both d and -d are tied. With a guessed t it has a kink
    // there, and further ones where the guess has kinks.
    Tensor alone = (ties & ~ties.roll(options.directions / 2, -1)).any(-1);
    if (options.formulation == Formulation::kExactDirection) return alone;
    const Tensor right = rollout.converged & (rollout.z != 0).any(-1);
    const Tensor guessed = ties.any(-1) | stepper.kinked_guess(start, inputs, rollout.direction, rollout.z);
    return options.max_passes > 1 ? at::where(right, alone, guessed) : guessed;
  };
  return certify_steps(problem, rollout.z, rollout.status, {tolerance, kinked, stepper.terms(start, inputs)});
}

}  // namespace lcp::physics
