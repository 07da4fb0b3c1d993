#include "simulation/infeasible_formulation.h"

#include <ATen/ATen.h>
#include <torch/utils.h>

namespace lcp::training {

using physics::Problem;
using torch::Tensor;

Problem infeasible_problem(const Tensor& v, const Tensor& u, const physics::SlidingBlock& block) {
  // The traditional formulation has the same q. Its M also has c = dt / m on the diagonal, and 1 in the column of
  // gamma.
  Problem problem = physics::traditional_problem(v, u, block);
  const Tensor kept = torch::tensor({0., 1., 0., 1., 0., 0., 1., 1., 0.}, problem.M.options()).view({3, 3});
  problem.M = problem.M * kept;
  return problem;
}

Tensor farkas_vector(const Problem& problem) {
  const torch::NoGradGuard no_grad;
  // y is the unit vector of the row whose q is negative, so that M'y is that row of M.
  const Tensor negative = problem.q.slice(-1, 0, 2) < 0;
  return at::constant_pad_nd(negative.to(problem.q.scalar_type()), {0, 1});
}

physics::SlidingBlockSolution infeasible_step(const Problem& problem, const SolveOptions& options) {
  const SolveResult result = solve(problem.M, problem.q, options);
  const Tensor residual = torch::minimum(result.z, (problem.M * result.z.unsqueeze(-2)).sum(-1) + problem.q);
  return {{result.w.select(-1, 0) - result.w.select(-1, 1), result.z.select(-1, 0), result.z.select(-1, 1),
           result.z.select(-1, 2)},
          result.z,
          residual.abs().amax(-1),
          result.status};
}

}  // namespace lcp::training
