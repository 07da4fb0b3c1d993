#include "lcp/physics/falling_block.h"

#include <ATen/ATen.h>

#include "physics/stepping.h"

namespace lcp::physics {
namespace {

using at::Tensor;

FallingBlock in_precision_of(const Tensor& x, const FallingBlock& block) {
  const auto dtype = x.scalar_type();
  return {block.mass.to(dtype), block.dt.to(dtype), block.gravity.to(dtype)};
}

Tensor stiffness(const FallingBlock& block) { return block.mass / (block.dt * block.dt); }

// Where the block would be without contact.
Tensor free_height(const Tensor& x, const Tensor& v, const FallingBlock& block) {
  return x + block.dt * (v - block.gravity * block.dt);
}

}  // namespace

FallingBlock FallingBlock::of(double mass, double dt, double gravity) {
  return {positive_parameter("mass", mass), positive_parameter("dt", dt), nonnegative_parameter("gravity", gravity)};
}

FallingBlockStep exact_step(const Tensor& x, const Tensor& v, const FallingBlock& parameters) {
  const FallingBlock block = in_precision_of(x, parameters);
  const Tensor free = free_height(x, v.to(x.scalar_type()), block);
  const Tensor x_next = at::clamp_min(free, 0);
  return {x_next, (x_next - x) / block.dt, stiffness(block) * at::clamp_min(-free, 0)};
}

Problem direct_problem(const Tensor& x, const Tensor& v, const FallingBlock& parameters) {
  const FallingBlock block = in_precision_of(x, parameters);
  const Tensor k = stiffness(block);
  return {k.unsqueeze(-1).unsqueeze(-1), (-k * free_height(x, v.to(x.scalar_type()), block)).unsqueeze(-1)};
}

FallingBlockStep read_direct(const Tensor& x, const Tensor& z, const Tensor& w, const FallingBlock& block) {
  const Tensor x_next = z.select(-1, 0);
  return {x_next, (x_next - x) / block.dt.to(x.scalar_type()), w.select(-1, 0)};
}

FallingBlockSolution step(const Tensor& x, const Tensor& v, const FallingBlock& block, const SolveOptions& options) {
  const Problem problem = direct_problem(x, v, block);
  const SolveResult result = solve(problem.M, problem.q, options);
  return {read_direct(x, result.z, result.w, block), result.z, natural_residual(problem, result.z), result.status};
}

FallingBlockSolution simulate(const Tensor& x, const Tensor& v, std::int64_t steps, const FallingBlock& parameters,
                              const SolveOptions& options) {
  const FallingBlock block = in_precision_of(x, parameters);
  const Tensors all = roll({x, v}, steps, [&](const Tensors& state, std::int64_t) -> Tensors {
    const Problem problem = direct_problem(state[0], state[1], block);
    const SolveResult result = solve(problem.M, problem.q, options);
    const FallingBlockStep next = read_direct(state[0], result.z, result.w, block);
    return {next.x_next, next.v_next, next.lambda, result.z, result.status};
  });
  const Problem problem = direct_problem(starts(x, all[0]), starts(v, all[1]), block);
  return {{all[0], all[1], all[2]}, all[3], natural_residual(problem, all[3]), all[4]};
}

RolloutCertificate certify_rollout(const Tensor& x, const Tensor& v, const FallingBlock& block,
                                   const FallingBlockSolution& rollout, std::optional<double> tolerance) {
  const Problem problem = direct_problem(starts(x, rollout.step.x_next), starts(v, rollout.step.v_next), block);
  return certify_steps(problem, rollout.z, rollout.status, tolerance, [](const Tensor& ties) { return ties.any(-1); });
}

}  // namespace lcp::physics
