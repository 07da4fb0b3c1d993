#include "lcp/physics/sliding_block.h"

#include <ATen/ATen.h>

#include <utility>

#include "lcp/solve_mixed.h"
#include "ops/rollout/rollout.h"
#include "physics/lcs_rollout.h"
#include "physics/stepping.h"

namespace lcp::physics {
namespace {

using at::Tensor;
using Formulation = SlidingBlockFormulation;

SlidingBlock in_precision_of(const Tensor& v, const SlidingBlock& block) {
  const auto dtype = v.scalar_type();
  return {positive_or_nan(block.mass.to(dtype)), positive_or_nan(block.dt.to(dtype)),
          nonnegative_or_nan(block.mu.to(dtype)), nonnegative_or_nan(block.gravity.to(dtype))};
}

Tensor as_matrix(const Tensor& x) { return x.unsqueeze(-1).unsqueeze(-1); }

Tensor free_velocity(const Tensor& v, const Tensor& u, const SlidingBlock& block) {
  return v + block.dt / block.mass * u.to(v.scalar_type());
}

// M, which depends on the parameters of the block alone; these are in the dtype of the state.
Tensor matrix(const SlidingBlock& block, Formulation formulation) {
  const Tensor c = block.dt / block.mass;
  const Tensor zero = at::zeros_like(c);
  const Tensor one = at::ones_like(c);
  const auto rows = [](const Tensor& x, const Tensor& y, const Tensor& z) { return matrix_of({x, y, z}); };
  const auto row = [](const Tensor& x, const Tensor& y, const Tensor& z) { return vector_of({x, y, z}); };
  switch (formulation) {
    case Formulation::kForward:
      return as_matrix(1 / c);
    case Formulation::kDirect:
      return as_matrix(1 / c) * at::eye(2, c.options());
    case Formulation::kTraditional:
      return rows(row(c, -c, one), row(-c, c, one), row(-one, -one, zero));
    case Formulation::kMixed:
      return rows(row(zero, zero, one), row(zero, zero, one), row(-one, -one, zero));
  }
  unknown_formulation();
}

Tensor vector(const Tensor& v, const Tensor& force, const SlidingBlock& block, Formulation formulation) {
  const Tensor u = force.to(v.scalar_type());
  const Tensor limit = block.max_friction();
  switch (formulation) {
    case Formulation::kForward:
      return (limit - (block.mass / block.dt * v + u)).unsqueeze(-1);
    case Formulation::kDirect: {
      const Tensor stopping = block.mass / block.dt * v + u;
      return vector_of({limit - stopping, limit + stopping});
    }
    case Formulation::kTraditional: {
      const Tensor free = free_velocity(v, u, block);
      return vector_of({free, -free, limit});
    }
    case Formulation::kMixed: {
      const Tensor zero = at::zeros_like(limit);
      return vector_of({zero, zero, limit});
    }
  }
  unknown_formulation();
}

Problem problem_of(const Tensor& v, const Tensor& u, const SlidingBlock& parameters, Formulation formulation) {
  const SlidingBlock block = in_precision_of(v, parameters);
  return {matrix(block, formulation), vector(v, u, block, formulation)};
}

// The problem with the equation 0 = x - c lambda_plus + c lambda_minus - v* and the given rows.
MixedProblem with_velocity(const Tensor& v, const Tensor& u, const SlidingBlock& block, Problem rows) {
  const Tensor c = block.dt / block.mass;
  return {at::ones({1, 1}, v.options()),
          vector_of({-c, c, at::zeros_like(c)}).unsqueeze(-2),
          constants({1.0, -1.0, 0.0}, v.options()).unsqueeze(-1),
          std::move(rows.M),
          -free_velocity(v, u, block).unsqueeze(-1),
          std::move(rows.q)};
}

// The same as a linear complementarity system with the state v and the input u.
LinearComplementaritySystem system_of(const SlidingBlock& block, Formulation formulation) {
  const Tensor c = block.dt / block.mass;
  const Tensor limit = block.max_friction();
  const Tensor zero = at::zeros_like(c);
  const Tensor one = at::ones_like(c);
  const Tensor none = as_matrix(zero);
  switch (formulation) {
    case Formulation::kForward:
      return {.A = none,
              .B = none,
              .D = as_matrix(one),
              .G = none,
              .d = zero.unsqueeze(-1),
              .E = as_matrix(-1 / c),
              .H = as_matrix(-one),
              .M = matrix(block, formulation),
              .q = limit.unsqueeze(-1)};
    case Formulation::kDirect:
      return {.A = none,
              .B = none,
              .D = matrix_of_entries({{one, -one}}),
              .G = matrix_of_entries({{zero, zero}}),
              .d = zero.unsqueeze(-1),
              .E = matrix_of_entries({{-1 / c}, {1 / c}}),
              .H = matrix_of_entries({{-one}, {one}}),
              .M = matrix(block, formulation),
              .q = vector_of({limit, limit})};
    case Formulation::kTraditional:
    case Formulation::kMixed:  // without its velocity it is the same
      return {.A = none,
              .B = none,
              .D = matrix_of_entries({{zero, zero, zero}}),
              .G = matrix_of_entries({{one / 2, -one / 2, zero}}),
              .d = zero.unsqueeze(-1),
              .E = matrix_of_entries({{one}, {-one}, {zero}}),
              .H = matrix_of_entries({{c}, {-c}, {zero}}),
              .M = matrix(block, Formulation::kTraditional),
              .q = vector_of({zero, zero, limit}),
              .cone = {2, 2, -1}};
  }
  unknown_formulation();
}

// v_next, with which the next step begins.
Tensor next_velocity(const Tensor& z, const Tensor& w, Formulation formulation, const SolveOptions& options) {
  switch (formulation) {
    case Formulation::kForward:
      return z.select(-1, 0);
    case Formulation::kDirect:
      return z.select(-1, 0) - z.select(-1, 1);
    case Formulation::kTraditional:
    case Formulation::kMixed:
      return held(sticks(z, w), (w.select(-1, 0) - w.select(-1, 1)) / 2, options);
  }
  unknown_formulation();
}

SlidingBlockStep read(const Tensor& v_next, const Tensor& z, const Tensor& w, const SlidingBlock& block,
                      Formulation formulation) {
  switch (formulation) {
    case Formulation::kForward:
      return {v_next, at::where(v_next.isnan(), v_next, at::zeros_like(v_next)), block.max_friction() - w.select(-1, 0),
              v_next.clone()};
    case Formulation::kDirect: {
      const Tensor lambda = block.max_friction().unsqueeze(-1) - w;  // (lambda_minus, lambda_plus)
      return {v_next, lambda.select(-1, 1), lambda.select(-1, 0), z.select(-1, 0) + z.select(-1, 1)};
    }
    case Formulation::kTraditional:
    case Formulation::kMixed:
      return {v_next, z.select(-1, 0), z.select(-1, 1), z.select(-1, 2)};
  }
  unknown_formulation();
}

SlidingBlockStep read(const Tensor& z, const Tensor& w, const SlidingBlock& block, Formulation formulation,
                      const SolveOptions& options) {
  return read(next_velocity(z, w, formulation, options), z, w, block, formulation);
}

template <class F>
SlidingBlockSolution map(const SlidingBlockSolution& s, const F& f) {
  return {{f(s.step.v_next), f(s.step.lambda_plus), f(s.step.lambda_minus), f(s.step.gamma)},
          f(s.z),
          f(s.residual),
          f(s.status)};
}

Shape batch_of(const Tensor& v, at::IntArrayRef inputs, const SlidingBlock& block) {
  return common_shape(
      {v.sizes(), inputs, block.mass.sizes(), block.dt.sizes(), block.mu.sizes(), block.gravity.sizes()});
}

Tensor inputs_of(const Tensor& v, const Tensor& u, const SlidingBlock& block) {
  const Shape batch = batch_of(v, u.dim() > 0 ? u.sizes().slice(1) : u.sizes(), block);
  return expanded_inputs(u.to(v.scalar_type()), batch, "u must be [steps, ...]");
}

// The feedback with a reference of one number, [..., 1].
std::optional<Feedback<Tensor>> of_velocities(std::optional<Feedback<Tensor>> feedback, std::int64_t steps) {
  if (!feedback) return feedback;
  const Tensor all = ops::of_all_steps("reference", feedback->reference, {}, steps, /*steps_first=*/true);
  return Feedback<Tensor>{feedback->K, all.unsqueeze(-1)};
}

}  // namespace

SlidingBlock SlidingBlock::of(double mass, double dt, double mu, double gravity) {
  return {positive_parameter("mass", mass), positive_parameter("dt", dt), nonnegative_parameter("mu", mu),
          nonnegative_parameter("gravity", gravity)};
}

Tensor SlidingBlock::max_friction() const { return mu * mass * gravity; }

SlidingBlockStep exact_step(const Tensor& v, const Tensor& u, const SlidingBlock& parameters) {
  const SlidingBlock block = in_precision_of(v, parameters);
  const Tensor free = free_velocity(v, u, block);
  const Tensor v_next = soft_threshold(free, block.dt * block.mu * block.gravity);
  const Tensor friction = block.mass * (v_next - free) / block.dt;
  return {v_next, positive_part(friction), positive_part(-friction), v_next.abs()};
}

Problem forward_problem(const Tensor& v, const Tensor& u, const SlidingBlock& block) {
  return problem_of(v, u, block, Formulation::kForward);
}

SlidingBlockStep read_forward(const Tensor& z, const Tensor& w, const SlidingBlock& block) {
  return read(z, w, in_precision_of(z, block), Formulation::kForward, {});
}

Problem direct_problem(const Tensor& v, const Tensor& u, const SlidingBlock& block) {
  return problem_of(v, u, block, Formulation::kDirect);
}

SlidingBlockStep read_direct(const Tensor& z, const Tensor& w, const SlidingBlock& block) {
  return read(z, w, in_precision_of(z, block), Formulation::kDirect, {});
}

Problem traditional_problem(const Tensor& v, const Tensor& u, const SlidingBlock& block) {
  return problem_of(v, u, block, Formulation::kTraditional);
}

SlidingBlockStep read_traditional(const Tensor& z, const Tensor& w, const SolveOptions& options) {
  return read(z, w, {}, Formulation::kTraditional, options);
}

MixedProblem mixed_problem(const Tensor& v, const Tensor& u, const SlidingBlock& parameters) {
  const SlidingBlock block = in_precision_of(v, parameters);
  return with_velocity(v, u, block, problem_of(v, u, block, Formulation::kMixed));
}

SlidingBlockSolution step(const Tensor& v, const Tensor& u, const SlidingBlock& block, Formulation formulation,
                          const SolveOptions& options) {
  return map(simulate(v, u.unsqueeze(0), block, formulation, options), [](const Tensor& all) { return all[0]; });
}

SlidingBlockSolution simulate(const Tensor& v, const Tensor& u, const SlidingBlock& parameters, Formulation formulation,
                              const SolveOptions& options, const std::optional<Feedback<Tensor>>& feedback) {
  const SlidingBlock block = in_precision_of(v, parameters);
  Inputs inputs = with_feedback(inputs_of(v, u, block).unsqueeze(-1), of_velocities(feedback, u.size(0)), 1);
  const Shape batch = leading(inputs.u).slice(1).vec();
  if (can_roll_out(options)) {
    const LcsRollout all = roll_out(system_of(block, formulation), expanded(v, batch).unsqueeze(-1), inputs, options);
    return {read(all.x_next.select(-1, 0), all.z, all.w, block, formulation), all.z.clone(), all.residual, all.status};
  }
  const Tensor M = matrix(block, formulation);
  const StepFunctions functions{[&](const Tensors& state, const Tensor& now, const Tensor& poison) -> Solved {
                                  Tensor q = vector(state[0], now, block, formulation);
                                  if (poison.defined()) q = q + poison.unsqueeze(-1);
                                  if (formulation != Formulation::kMixed) return {solve(M, q, options), {}};
                                  const MixedProblem mixed = with_velocity(state[0], now, block, {M, q});
                                  MixedResult result =
                                      solve_mixed(mixed.A, mixed.B, mixed.C, mixed.M, mixed.p, mixed.q, options);
                                  return {{std::move(result.z), std::move(result.w), std::move(result.status)}, {}};
                                },
                                [&](const Tensors&, const Tensor&, const Solved& solved) -> Tensors {
                                  return {next_velocity(solved.result.z, solved.result.w, formulation, options)};
                                }};
  inputs.u = inputs.u.squeeze(-1);
  const Rollout all = roll_out({expanded(v, batch)}, inputs, batch, functions);
  const Problem rows{M, vector(all.starts[0], all.u, block, formulation)};
  SlidingBlockStep steps = read(all.result.z, all.result.w, block, formulation, options);
  const Tensor residual =
      formulation == Formulation::kMixed
          ? natural_residual(with_velocity(all.starts[0], all.u, block, rows), steps.v_next.unsqueeze(-1), all.result.z)
          : natural_residual(rows, all.result.z);
  return map({std::move(steps), all.result.z.clone(), residual, all.result.status},
             [&](const Tensor& x) { return with_failures(x, all.failure); });
}

RolloutCertificate certify_rollout(const Tensor& v, const Tensor& u, const SlidingBlock& parameters,
                                   Formulation formulation, const SlidingBlockSolution& rollout,
                                   std::optional<double> tolerance) {
  const SlidingBlock block = in_precision_of(v, parameters);
  const Tensor inputs = inputs_of(v, u, block);
  const Tensor start = starts_of(v, rollout.step.v_next);
  if (formulation == Formulation::kTraditional || formulation == Formulation::kMixed) {
    const auto kinked = [&](const Tensor& ties) {
      const SlidingBlockStep& step = rollout.step;
      return kinked_friction(ties, (step.lambda_plus - step.lambda_minus).abs(), block.max_friction(), step.gamma,
                             tie_tolerance(tolerance, v.scalar_type()));
    };
    return certify_steps(problem_of(start, inputs, block, Formulation::kTraditional), rollout.z, rollout.status,
                         {tolerance, kinked, {}});
  }
  const Tensor terms = block.mass / block.dt * start.abs() + inputs.abs() + block.max_friction();
  return certify_steps(problem_of(start, inputs, block, formulation), rollout.z, rollout.status,
                       {tolerance, [](const Tensor& ties) { return ties.any(-1); }, terms.unsqueeze(-1)});
}

}  // namespace lcp::physics
