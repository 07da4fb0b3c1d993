#include "lcp/physics/falling_block.h"

#include <ATen/ATen.h>

#include "physics/lcs_rollout.h"
#include "physics/stepping.h"

namespace lcp::physics {
namespace {

using at::Tensor;

FallingBlock in_precision_of(const Tensor& x, const FallingBlock& block) {
  const auto dtype = x.scalar_type();
  return {positive_or_nan(block.mass.to(dtype)), positive_or_nan(block.dt.to(dtype)),
          nonnegative_or_nan(block.gravity.to(dtype))};
}

Tensor stiffness(const FallingBlock& block) { return block.mass / (block.dt * block.dt); }

// The height at the end of the step without contact.
Tensor free_height(const Tensor& x, const Tensor& v, const FallingBlock& block) {
  return x + block.dt * (v - block.gravity * block.dt);
}

Problem problem_of(const Tensor& x, const Tensor& v, const FallingBlock& block) {
  const Tensor k = stiffness(block);
  return {k.unsqueeze(-1).unsqueeze(-1), (-k * free_height(x, v, block)).unsqueeze(-1)};
}

// The same as a linear complementarity system with the state (x, v). That v_next = v + dt (w / m - g) is exact in
// flight, where w = 0, and at rest, where it is the rounding error of its terms.
LinearComplementaritySystem system_of(const FallingBlock& block) {
  const Tensor k = stiffness(block);
  const Tensor zero = at::zeros_like(k);
  const Tensor one = at::ones_like(k);
  const Tensor fall = block.gravity * block.dt;
  return {.A = matrix_of_entries({{zero, zero}, {zero, one}}),
          .B = at::zeros({2, 0}, k.options()),
          .D = matrix_of_entries({{one}, {zero}}),
          .G = matrix_of_entries({{zero}, {block.dt / block.mass}}),
          .d = vector_of({zero, -fall}),
          .E = matrix_of_entries({{-k, -k * block.dt}}),
          .H = at::zeros({1, 0}, k.options()),
          .M = k.unsqueeze(-1).unsqueeze(-1),
          .q = (k * block.dt * fall).unsqueeze(-1)};
}

FallingBlockStep read(const Tensor& x, const Tensor& v, const Tensor& x_next, const Tensor& lambda,
                      const FallingBlock& block) {
  // In flight, (x_next - x) / dt would lose accuracy by cancellation.
  const Tensor v_next =
      at::where(x_next > 0, v + block.dt * (lambda / block.mass - block.gravity), (x_next - x) / block.dt);
  return {x_next, at::where(x_next.isnan(), x_next, v_next), lambda};
}

template <class F>
FallingBlockSolution map(const FallingBlockSolution& s, const F& f) {
  return {{f(s.step.x_next), f(s.step.v_next), f(s.step.lambda)}, f(s.z), f(s.residual), f(s.status)};
}

Shape batch_of(const Tensor& x, const Tensor& v, const FallingBlock& block) {
  return common_shape({x.sizes(), v.sizes(), block.mass.sizes(), block.dt.sizes(), block.gravity.sizes()});
}

}  // namespace

FallingBlock FallingBlock::of(double mass, double dt, double gravity) {
  return {positive_parameter("mass", mass), positive_parameter("dt", dt), nonnegative_parameter("gravity", gravity)};
}

FallingBlockStep exact_step(const Tensor& x, const Tensor& v, const FallingBlock& parameters) {
  const FallingBlock block = in_precision_of(x, parameters);
  const Tensor free = free_height(x, v.to(x.scalar_type()), block);
  return read(x, v.to(x.scalar_type()), positive_part(free), stiffness(block) * positive_part(-free), block);
}

Problem direct_problem(const Tensor& x, const Tensor& v, const FallingBlock& block) {
  return problem_of(x, v.to(x.scalar_type()), in_precision_of(x, block));
}

FallingBlockStep read_direct(const Tensor& x, const Tensor& v, const Tensor& z, const Tensor& w,
                             const FallingBlock& block) {
  return read(x, v.to(x.scalar_type()), z.select(-1, 0), w.select(-1, 0), in_precision_of(x, block));
}

FallingBlockSolution step(const Tensor& x, const Tensor& v, const FallingBlock& block, const SolveOptions& options) {
  return map(simulate(x, v, 1, block, options), [](const Tensor& all) { return all[0]; });
}

FallingBlockSolution simulate(const Tensor& x, const Tensor& v, std::int64_t steps, const FallingBlock& parameters,
                              const SolveOptions& options) {
  TORCH_CHECK(steps >= 1, "steps must be >= 1; got ", steps);
  const FallingBlock block = in_precision_of(x, parameters);
  const Shape batch = batch_of(x, v, block);
  if (can_roll_out(options)) {
    const Tensor nothing = at::zeros({1, 0}, x.options()).expand({steps, 0});
    const Tensor state = at::stack({expanded(x, batch), expanded(v.to(x.scalar_type()), batch)}, -1);
    const LcsRollout all = roll_out(system_of(block), state, nothing, options);
    return {{all.x_next.select(-1, 0), all.x_next.select(-1, 1), all.w.select(-1, 0)}, all.z, all.residual, all.status};
  }
  const StepFunctions functions{
      [&](const Tensors& state, const Tensor&, const Tensor& poison) -> Solved {
        const Problem problem = problem_of(state[0], state[1], block);
        return {solve(problem.M, poison.defined() ? problem.q + poison.unsqueeze(-1) : problem.q, options), {}};
      },
      [&](const Tensors& state, const Tensor&, const Solved& solved) -> Tensors {
        const SolveResult& result = solved.result;
        const FallingBlockStep next = read(state[0], state[1], result.z.select(-1, 0), result.w.select(-1, 0), block);
        return {next.x_next, next.v_next};
      }};
  const Tensor nothing = at::zeros({1}, x.options()).expand({steps});
  const Rollout all = roll_out({expanded(x, batch), expanded(v.to(x.scalar_type()), batch)}, nothing, batch, functions);
  const FallingBlockSolution solution{{all.ends[0], all.ends[1], all.result.w.select(-1, 0)},
                                      all.result.z,
                                      natural_residual(problem_of(all.starts[0], all.starts[1], block), all.result.z),
                                      all.result.status};
  return map(solution, [&](const Tensor& x_of) { return with_failures(x_of, all.failure); });
}

RolloutCertificate certify_rollout(const Tensor& x, const Tensor& v, const FallingBlock& parameters,
                                   const FallingBlockSolution& rollout, std::optional<double> tolerance) {
  const FallingBlock block = in_precision_of(x, parameters);
  const Tensor from = starts_of(x, rollout.step.x_next);
  const Tensor at_speed = starts_of(v.to(x.scalar_type()), rollout.step.v_next);
  const Tensor lengths = from.abs() + block.dt * (at_speed.abs() + block.gravity * block.dt);
  return certify_steps(
      problem_of(from, at_speed, block), rollout.z, rollout.status,
      {tolerance, [](const Tensor& ties) { return ties.any(-1); }, (stiffness(block) * lengths).unsqueeze(-1)});
}

}  // namespace lcp::physics
