#include "lcp/physics/sliding_block.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include <cmath>
#include <vector>

#include "lcp/solve.h"

namespace lcp::physics {
namespace {

using at::Tensor;

SlidingBlock in_precision_of(const Tensor& v, const SlidingBlock& block) {
  const auto dtype = v.scalar_type();
  return {block.mass.to(dtype), block.dt.to(dtype), block.mu.to(dtype), block.gravity.to(dtype)};
}

// For reports: without a gradient.
Tensor natural_residual(const SlidingBlockProblem& problem, const Tensor& z) {
  const c10::NoGradGuard no_grad;
  const Tensor w = at::matmul(problem.M, z.unsqueeze(-1)).squeeze(-1) + problem.q;
  return at::minimum(z, w).abs().amax(-1);
}

}  // namespace

SlidingBlock SlidingBlock::of(double mass, double dt, double mu, double gravity) {
  TORCH_CHECK(std::isfinite(mass) && mass > 0, "mass must be > 0; got ", mass);
  TORCH_CHECK(std::isfinite(dt) && dt > 0, "dt must be > 0; got ", dt);
  TORCH_CHECK(std::isfinite(mu) && mu >= 0, "mu must be >= 0; got ", mu);
  TORCH_CHECK(std::isfinite(gravity) && gravity >= 0, "gravity must be >= 0; got ", gravity);
  const auto number = [](double x) { return at::scalar_tensor(x, at::kDouble); };
  return {number(mass), number(dt), number(mu), number(gravity)};
}

Tensor SlidingBlock::max_friction() const { return mu * mass * gravity; }

SlidingBlockStep coulomb_step(const Tensor& v, const Tensor& force, const SlidingBlock& parameters) {
  const SlidingBlock block = in_precision_of(v, parameters);
  const Tensor u = force.to(v.scalar_type());
  const Tensor free = v + block.dt * u / block.mass;
  const Tensor v_next = free.sign() * at::clamp_min(free.abs() - block.dt * block.mu * block.gravity, 0);
  const Tensor friction = block.mass * (v_next - free) / block.dt;
  return {v_next, at::clamp_min(friction, 0), at::clamp_min(-friction, 0), v_next.abs()};
}

SlidingBlockProblem direct_problem(const Tensor& v, const Tensor& force, const SlidingBlock& parameters) {
  const SlidingBlock block = in_precision_of(v, parameters);
  const Tensor u = force.to(v.scalar_type());
  const Tensor inertia = block.mass / block.dt;
  const Tensor stopping = inertia * v + u;
  const Tensor limit = block.max_friction();
  return {inertia.unsqueeze(-1).unsqueeze(-1) * at::eye(2, v.options()),
          at::stack({limit - stopping, limit + stopping}, -1)};
}

SlidingBlockStep read_direct(const Tensor& z, const Tensor& w, const SlidingBlock& parameters) {
  const Tensor limit = in_precision_of(z, parameters).max_friction();
  return {z.select(-1, 0) - z.select(-1, 1), limit - w.select(-1, 1), limit - w.select(-1, 0), z.sum(-1)};
}

SlidingBlockProblem traditional_problem(const Tensor& v, const Tensor& force, const SlidingBlock& parameters) {
  const SlidingBlock block = in_precision_of(v, parameters);
  const Tensor u = force.to(v.scalar_type());
  const Tensor c = block.dt / block.mass;
  const Tensor one = at::ones_like(c);
  const auto row = [](const Tensor& x, const Tensor& y, const Tensor& z) { return at::stack({x, y, z}, -1); };
  const Tensor M = at::stack({row(c, -c, one), row(-c, c, one), row(-one, -one, at::zeros_like(c))}, -2);
  const Tensor free = v + c * u;
  const auto q = at::broadcast_tensors({free, -free, block.max_friction()});
  return {M, at::stack(q, -1)};
}

SlidingBlockStep read_traditional(const Tensor& z, const Tensor& w) {
  const Tensor gamma = z.select(-1, 2);
  const Tensor v_next = at::where(gamma > 0, (w.select(-1, 0) - w.select(-1, 1)) / 2, at::zeros_like(gamma));
  return {at::where(gamma.isnan(), gamma, v_next), z.select(-1, 0), z.select(-1, 1), gamma};
}

SlidingBlockSolution step(const Tensor& v, const Tensor& u, const SlidingBlock& block,
                          SlidingBlockFormulation formulation) {
  const bool direct = formulation == SlidingBlockFormulation::kDirect;
  const SlidingBlockProblem problem = direct ? direct_problem(v, u, block) : traditional_problem(v, u, block);
  const SolveResult result = solve(problem.M, problem.q);
  return {direct ? read_direct(result.z, result.w, block) : read_traditional(result.z, result.w),
          natural_residual(problem, result.z), result.status};
}

SlidingBlockSolution simulate(const Tensor& v, const Tensor& u, const SlidingBlock& block,
                              SlidingBlockFormulation formulation) {
  TORCH_CHECK(u.dim() >= 1, "u must be [steps, ...]; got ", u.sizes());
  std::vector<Tensor> v_next, plus, minus, gamma, residual, status;
  Tensor now = v;
  for (std::int64_t k = 0; k < u.size(0); ++k) {
    const SlidingBlockSolution solution = step(now, u[k], block, formulation);
    now = solution.step.v_next;
    v_next.push_back(solution.step.v_next);
    plus.push_back(solution.step.lambda_plus);
    minus.push_back(solution.step.lambda_minus);
    gamma.push_back(solution.step.gamma);
    residual.push_back(solution.residual);
    status.push_back(solution.status);
  }
  TORCH_CHECK(!v_next.empty(), "u must have at least one step; got ", u.sizes());
  return {
      {at::stack(v_next), at::stack(plus), at::stack(minus), at::stack(gamma)}, at::stack(residual), at::stack(status)};
}

}  // namespace lcp::physics
