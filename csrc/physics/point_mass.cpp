#include "lcp/physics/point_mass.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include <utility>

#include "lcp/solve_mixed.h"
#include "ops/rollout/rollout.h"
#include "physics/stepping.h"
#include "physics/system_rollout.h"

namespace lcp::physics {
namespace {

using at::Tensor;

constexpr std::int64_t kX = 0, kY = 1;
// The kinds of their rollouts.
constexpr const char *kAtPositions = "point_mass_at_positions", *kAtVelocities = "point_mass_at_velocities";
constexpr std::int64_t kNormal = 0, kPlus = 1, kMinus = 2, kGamma = 3;

PointMass in_precision_of(const Tensor& v, const PointMass& mass) {
  const auto dtype = v.scalar_type();
  return {positive_or_nan(mass.mass.to(dtype)), positive_or_nan(mass.dt.to(dtype)),
          nonnegative_or_nan(mass.mu.to(dtype)), nonnegative_or_nan(mass.gravity.to(dtype)),
          share_or_nan(mass.restitution.to(dtype))};
}

// The change of the velocity by the input and gravity, dt (u / m + (0, -g)): [..., 2].
Tensor free_change(const Tensor& u, const PointMass& mass) {
  const Tensor fall = vector_of({at::zeros_like(mass.gravity), -mass.gravity});
  return mass.dt.unsqueeze(-1) * (u.to(mass.mass.scalar_type()) / mass.mass.unsqueeze(-1) + fall);
}

// c in the contact condition n'v_next + c >= 0.
Tensor gap_speed(const PointMassState& state, const Tensor& free, const PointMass& mass, Stabilization stabilization) {
  const Tensor y = state.position.select(-1, kY);
  if (stabilization == Stabilization::kPosition) return y / mass.dt;
  const Tensor rebound = -mass.restitution * positive_part(-state.velocity.select(-1, kY));
  const Tensor out_of_reach =
      positive_part(-free.select(-1, kY)) + 1;  // so large that the condition holds without an impulse
  return at::where(y <= 0, rebound, out_of_reach);
}

Tensor reduced_matrix(const PointMass& mass) {
  const Tensor k = 1 / mass.mass;
  const Tensor zero = at::zeros_like(k);
  const Tensor one = at::ones_like(k);
  return matrix_of({vector_of({k, zero, zero, zero}), vector_of({zero, k, -k, one}), vector_of({zero, -k, k, one}),
                    vector_of({mass.mu, -one, -one, zero})});
}

Tensor reduced_vector(const Tensor& free, const Tensor& c) {
  const Tensor slide = free.select(-1, kX);
  return vector_of({free.select(-1, kY) + c, slide, -slide, at::zeros_like(slide)});
}

// [n D 0]', [4, 2].
Tensor contact_jacobian(const at::TensorOptions& options) {
  return constants({0., 1., 1., 0., -1., 0., 0., 0.}, options).view({4, 2});
}

// [0 0 0; 0 0 e; mu -e' 0], [..., 4, 4].
Tensor cone_matrix(const PointMass& mass) {
  const Tensor zero = at::zeros_like(mass.mu);
  const Tensor one = at::ones_like(mass.mu);
  return matrix_of({vector_of({zero, zero, zero, zero}), vector_of({zero, zero, zero, one}),
                    vector_of({zero, zero, zero, one}), vector_of({mass.mu, -one, -one, zero})});
}

Tensor inertia_matrix(const PointMass& mass) {
  return mass.mass.unsqueeze(-1).unsqueeze(-1) * at::eye(2, mass.mass.options());
}

Tensor mixed_vector(const Tensor& c) {
  const Tensor zero = at::zeros_like(c);
  return vector_of({c, zero, zero, zero});
}

// The state after a step, from the solution z, w of its problem.
PointMassState advanced(const PointMassState& state, const Tensor& free, const Tensor& c, const Tensor& z,
                        const Tensor& w, const PointMass& mass, Stabilization stabilization,
                        const SolveOptions& options) {
  // In contact, w_n = 0 and v_y is exactly -c; in flight, lambda_n = 0. Where both are 0, the derivative is that of
  // lambda_n.
  const Tensor lambda_n = z.select(-1, kNormal);
  const Tensor w_n = w.select(-1, kNormal);
  const Tensor v_y = at::where(lambda_n > 0, w_n - c, free.select(-1, kY) + lambda_n / mass.mass);
  const Tensor sliding = (w.select(-1, kPlus) - w.select(-1, kMinus)) / 2;
  const Tensor v_x = at::where((lambda_n == 0) & (w_n > 0), free.select(-1, kX),
                               held(sticks(z.slice(-1, 1), w.slice(-1, 1)), sliding, options));
  const Tensor x = state.position.select(-1, kX) + mass.dt * v_x;
  // At position level, w_n = y_next / dt, which is never negative.
  const Tensor y =
      stabilization == Stabilization::kPosition ? mass.dt * w_n : state.position.select(-1, kY) + mass.dt * v_y;
  return {vector_of({x, y}), vector_of({v_x, v_y})};
}

PointMassStep with_impulses(PointMassState next, const Tensor& z) {
  return {std::move(next), z.select(-1, kNormal), z.select(-1, kPlus), z.select(-1, kMinus), z.select(-1, kGamma)};
}

class PointMassStepper {
 public:
  PointMassStepper(const Tensor& velocity, const PointMass& mass, const PointMassOptions& options,
                   const SolveOptions& solve_options)
      : mass_(in_precision_of(velocity, mass)), options_(options), solve_options_(solve_options) {
    const bool position = options.stabilization == Stabilization::kPosition;
    if (position && can_read(mass.restitution)) {
      TORCH_CHECK((mass.restitution == 0).all().item<bool>(),
                  "restitution must be 0 at position level, which has none; got ", mass.restitution);
    }
    check_ties(solve_options.ties);
    if (options.formulation == PointMassFormulation::kStewartTrinkle) {
      M_ = reduced_matrix(mass_);
    } else {
      G_ = contact_jacobian(velocity.options());
      F_ = cone_matrix(mass_);
      Q_ = inertia_matrix(mass_);
    }
  }

  Tensor free(const PointMassState& state, const Tensor& u) const { return state.velocity + free_change(u, mass_); }
  Tensor gap(const PointMassState& state, const Tensor& free) const {
    return gap_speed(state, free, mass_, options_.stabilization);
  }

  SolveResult solve(const Tensor& free, const Tensor& c, const Tensor& poison) const {
    const auto poisoned = [&](const Tensor& q) { return poison.defined() ? q + poison.unsqueeze(-1) : q; };
    if (options_.formulation == PointMassFormulation::kStewartTrinkle) {
      return lcp::solve(M_, poisoned(reduced_vector(free, c)), solve_options_);
    }
    const MixedProblem form = belbute_peres(free, c);
    MixedResult result = solve_mixed(form.A, form.B, form.C, form.M, form.p, poisoned(form.q), solve_options_);
    return {std::move(result.z), std::move(result.w), std::move(result.status)};
  }

  PointMassState next(const PointMassState& state, const Tensor& free, const Tensor& c,
                      const SolveResult& result) const {
    return advanced(state, free, c, result.z, result.w, mass_, options_.stabilization, solve_options_);
  }

  Tensor residual(const Tensor& free, const Tensor& c, const PointMassState& next, const Tensor& z) const {
    return options_.formulation == PointMassFormulation::kStewartTrinkle
               ? natural_residual(Problem{M_, reduced_vector(free, c)}, z)
               : natural_residual(belbute_peres(free, c), -next.velocity, z);
  }

 private:
  MixedProblem belbute_peres(const Tensor& free, const Tensor& c) const {
    return {Q_, G_.t(), -G_, F_, mass_.mass.unsqueeze(-1) * free, mixed_vector(c)};
  }

  PointMass mass_;
  PointMassOptions options_;
  SolveOptions solve_options_;
  Tensor M_, G_, F_, Q_;
};

template <class F>
PointMassSolution map(const PointMassSolution& s, const F& f) {
  const PointMassStep& t = s.step;
  return {{{f(t.next.position), f(t.next.velocity)}, f(t.lambda_n), f(t.lambda_plus), f(t.lambda_minus), f(t.gamma)},
          f(s.z),
          f(s.residual),
          f(s.status)};
}

// A rollout in operators of tensors.
PointMassSolution step_by_step(const PointMassState& first, const Inputs& inputs, const PointMassStepper& stepper) {
  const StepFunctions functions{
      [&](const Tensors& now, const Tensor& force, const Tensor& poison) -> Solved {
        const PointMassState start{now[0], now[1]};
        const Tensor free = stepper.free(start, force);
        const Tensor c = stepper.gap(start, free);
        return {stepper.solve(free, c, poison), {free, c}};
      },
      [&](const Tensors& now, const Tensor&, const Solved& solved) -> Tensors {
        const PointMassState next = stepper.next({now[0], now[1]}, solved.extras[0], solved.extras[1], solved.result);
        return {next.position, next.velocity};
      }};
  const Rollout all = roll_out({first.position, first.velocity}, inputs, leading(first.velocity).vec(), functions);
  const PointMassState ends{all.ends[0], all.ends[1]};
  const Tensor residual = stepper.residual(all.extras[0], all.extras[1], ends, all.result.z);
  return map({with_impulses(ends, all.result.z), all.result.z.clone(), residual, all.result.status},
             [&](const Tensor& x) { return with_failures(x, all.failure); });
}

// Both formulations as the reduced problem, with the state (x, y, v_x, v_y).
FormulaSystem system_of(const PointMass& mass, const PointMassOptions& options, const SolveOptions& solve_options) {
  const bool position = options.stabilization == Stabilization::kPosition;
  FormulaSystem system;
  system.step = step_writer(position ? kAtPositions : kAtVelocities, solve_options).text();
  for (const Tensor& x : {mass.mass, mass.dt, mass.mu, mass.gravity, mass.restitution}) {
    system.parameters.push_back(x.unsqueeze(-1));
  }
  system.D = contact_jacobian(at::kDouble).t();
  return system;
}

// x_next and z for the inputs of lcp::_rollout.
Tensors point_mass_by_tensors(const ops::StepText& step, const Tensors& inputs) {
  const auto parameter = [&](std::int64_t k) { return inputs[0].select(-1, k); };
  const PointMass mass{parameter(0), parameter(1), parameter(2), parameter(3), parameter(4)};
  const PointMassState first{inputs[1].slice(-1, 0, 2), inputs[1].slice(-1, 2)};
  const PointMassOptions options{PointMassFormulation::kStewartTrinkle,
                                 step.kind() == kAtPositions ? Stabilization::kPosition : Stabilization::kVelocity};
  const PointMassSolution all =
      step_by_step(first, inputs[2].movedim(-2, 0), {first.velocity, mass, options, solve_options_of(step)});
  return steps_behind({at::cat({all.step.next.position, all.step.next.velocity}, -1), all.z});
}

const ops::RegisterByTensors registered_positions(kAtPositions, point_mass_by_tensors),
    registered_velocities(kAtVelocities, point_mass_by_tensors);

Tensor inputs_of(const PointMassState& state, const Tensor& u, const PointMass& mass) {
  constexpr const char* kExpected = "u must be [steps, ..., 2]";
  TORCH_CHECK(u.dim() >= 2, kExpected, "; got ", u.sizes());
  const Shape batch =
      common_shape({leading(state.position), leading(state.velocity), leading(u).slice(1), mass.mass.sizes(),
                    mass.dt.sizes(), mass.mu.sizes(), mass.gravity.sizes(), mass.restitution.sizes()});
  return expanded_inputs(u.to(state.velocity.scalar_type()), batch, kExpected, {2});
}

}  // namespace

PointMass PointMass::of(double mass, double dt, double mu, double gravity, double restitution) {
  TORCH_CHECK(restitution >= 0 && restitution <= 1, "restitution must be in [0, 1]; got ", restitution);
  return {positive_parameter("mass", mass), positive_parameter("dt", dt), nonnegative_parameter("mu", mu),
          nonnegative_parameter("gravity", gravity), nonnegative_parameter("restitution", restitution)};
}

PointMassStep exact_step(const PointMassState& state, const Tensor& u, const PointMass& parameters,
                         Stabilization stabilization) {
  const PointMass mass = in_precision_of(state.velocity, parameters);
  const Tensor free = state.velocity + free_change(u, mass);
  const Tensor c = gap_speed(state, free, mass, stabilization);
  const Tensor v_y = at::maximum(free.select(-1, kY), -c);
  const Tensor lambda_n = mass.mass * (v_y - free.select(-1, kY));
  const Tensor slide = free.select(-1, kX);
  const Tensor v_x = soft_threshold(slide, mass.mu * lambda_n / mass.mass);
  const Tensor friction = mass.mass * (v_x - slide);
  const Tensor velocity = vector_of({v_x, v_y});
  return {{state.position + mass.dt.unsqueeze(-1) * velocity, velocity},
          lambda_n,
          positive_part(friction),
          positive_part(-friction),
          v_x.abs()};
}

MixedProblem stewart_trinkle_problem(const PointMassState& state, const Tensor& u, const PointMass& parameters,
                                     Stabilization stabilization) {
  const PointMass mass = in_precision_of(state.velocity, parameters);
  const Tensor free = state.velocity + free_change(u, mass);
  const Tensor J = contact_jacobian(free.options());
  return {inertia_matrix(mass),
          -J.t(),
          J,
          cone_matrix(mass),
          -(mass.mass.unsqueeze(-1) * free),
          mixed_vector(gap_speed(state, free, mass, stabilization))};
}

Problem reduced_problem(const PointMassState& state, const Tensor& u, const PointMass& parameters,
                        Stabilization stabilization) {
  const PointMass mass = in_precision_of(state.velocity, parameters);
  const Tensor free = state.velocity + free_change(u, mass);
  return {reduced_matrix(mass), reduced_vector(free, gap_speed(state, free, mass, stabilization))};
}

MixedProblem belbute_peres_problem(const PointMassState& state, const Tensor& u, const PointMass& parameters,
                                   Stabilization stabilization) {
  MixedProblem form = stewart_trinkle_problem(state, u, parameters, stabilization);
  return {form.A, -form.B, -form.C, form.M, -form.p, form.q};
}

PointMassStep read_point_mass(const PointMassState& state, const Tensor& u, const Tensor& z, const Tensor& w,
                              const PointMass& parameters, Stabilization stabilization, const SolveOptions& options) {
  const PointMass mass = in_precision_of(state.velocity, parameters);
  const Tensor free = state.velocity + free_change(u, mass);
  const Tensor c = gap_speed(state, free, mass, stabilization);
  return with_impulses(advanced(state, free, c, z, w, mass, stabilization, options), z);
}

PointMassSolution step(const PointMassState& state, const Tensor& u, const PointMass& mass,
                       const PointMassOptions& options, const SolveOptions& solve_options) {
  return map(simulate(state, u.unsqueeze(0), mass, options, solve_options), [](const Tensor& all) { return all[0]; });
}

PointMassSolution simulate(const PointMassState& state, const Tensor& u, const PointMass& parameters,
                           const PointMassOptions& options, const SolveOptions& solve_options,
                           const std::optional<Feedback<PointMassState>>& feedback) {
  const PointMass mass = in_precision_of(state.velocity, parameters);
  const PointMassStepper stepper(state.velocity, mass, options, solve_options);
  // A mass in flight does not read its restitution.
  const Tensor given = refused_where_nan(mass.restitution, inputs_of(state, u, mass), 1);
  Inputs inputs = with_feedback(given, feedback, 2);
  const Shape batch = leading(inputs.u).slice(1).vec();
  const PointMassState first{expanded(state.position.to(state.velocity.scalar_type()), batch, {2}),
                             expanded(state.velocity, batch, {2})};
  const FormulaSystem system = system_of(mass, options, solve_options);
  const Tensor x = at::cat({first.position, first.velocity}, -1);
  const bool is_checked = options.stabilization != Stabilization::kPosition || can_read(mass.restitution);
  if (!is_checked) inputs.u = refused_where(mass.restitution != 0, inputs.u);
  if (!can_roll_out(system, x, inputs.u, solve_options)) return step_by_step(first, inputs, stepper);
  const SystemSteps all = roll_out(system, x, inputs);
  return {with_impulses({all.x_next.slice(-1, 0, 2), all.x_next.slice(-1, 2)}, all.z), all.z.clone(), all.residual,
          all.status};
}

RolloutCertificate certify_rollout(const PointMassState& state, const Tensor& u, const PointMass& mass,
                                   const PointMassOptions& options, const PointMassSolution& rollout,
                                   std::optional<double> tolerance) {
  const PointMassState start{starts_of(state.position, rollout.step.next.position),
                             starts_of(state.velocity, rollout.step.next.velocity)};
  const Tensor inputs = inputs_of(state, u, mass);
  const Problem problem = reduced_problem(start, inputs, mass, options.stabilization);
  const PointMassStep& step = rollout.step;
  const auto kinked = [&](const Tensor& ties) {
    const Tensor pressed = step.lambda_n > 0;
    const Tensor friction = kinked_friction(ties.slice(-1, 1), (step.lambda_plus - step.lambda_minus).abs(),
                                            mass.mu.to(step.gamma.scalar_type()) * step.lambda_n, step.gamma,
                                            tie_tolerance(tolerance, step.gamma.scalar_type()));
    Tensor contact = ties.select(-1, kNormal) | (pressed & friction);
    if (options.stabilization == Stabilization::kPosition) return contact;
    return contact | (pressed & (start.velocity.select(-1, kY) == 0) & (mass.restitution > 0));
  };
  // The contact row of M has no entry off the diagonal.
  const PointMass parts = in_precision_of(state.velocity, mass);
  const Tensor free = start.velocity + free_change(inputs, parts);
  const Tensor fall = parts.dt * (inputs.select(-1, kY) / parts.mass).abs() + parts.dt * parts.gravity;
  const Tensor speeds =
      start.velocity.select(-1, kY).abs() + fall + gap_speed(start, free, parts, options.stabilization).abs();
  const Tensor none = at::full_like(speeds, -1);
  return certify_steps(problem, rollout.z, rollout.status, {tolerance, kinked, vector_of({speeds, none, none, none})});
}

}  // namespace lcp::physics
