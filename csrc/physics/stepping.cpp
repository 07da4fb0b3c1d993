#include "physics/stepping.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include <cmath>

#include "lcp/certify.h"

namespace lcp::physics {

using at::Tensor;

Tensor positive_parameter(const char* name, double x) {
  TORCH_CHECK(std::isfinite(x) && x > 0, name, " must be > 0; got ", x);
  return at::scalar_tensor(x, at::kDouble);
}

Tensor nonnegative_parameter(const char* name, double x) {
  TORCH_CHECK(std::isfinite(x) && x >= 0, name, " must be >= 0; got ", x);
  return at::scalar_tensor(x, at::kDouble);
}

Tensors roll(Tensors state, std::int64_t steps, const std::function<Tensors(const Tensors&, std::int64_t)>& step) {
  TORCH_CHECK(steps >= 1, "steps must be >= 1; got ", steps);
  std::vector<Tensors> records;
  for (std::int64_t k = 0; k < steps; ++k) {
    Tensors record = step(state, k);
    std::copy_n(record.begin(), state.size(), state.begin());
    records.resize(record.size());
    for (std::size_t i = 0; i < record.size(); ++i) records[i].push_back(std::move(record[i]));
  }
  Tensors stacked;
  for (Tensors& record : records) {
    stacked.push_back(at::stack(record));
    record.clear();
  }
  return stacked;
}

Tensor starts(const Tensor& first, const Tensor& next) {
  return at::cat({first.expand_as(next[0]).unsqueeze(0), next.slice(0, 0, -1)});
}

Tensor vector_of(std::initializer_list<Tensor> entries) { return at::stack(at::broadcast_tensors(entries), -1); }

Tensor matrix_of(std::initializer_list<Tensor> rows) { return at::stack(at::broadcast_tensors(rows), -2); }

Tensor times(const Tensor& M, const Tensor& x) { return at::matmul(M, x.unsqueeze(-1)).squeeze(-1); }

Tensor natural_residual(const Problem& problem, const Tensor& z) {
  const c10::NoGradGuard no_grad;
  return at::minimum(z, times(problem.M, z) + problem.q).abs().amax(-1);
}

Tensor natural_residual(const MixedProblem& problem, const Tensor& x, const Tensor& z) {
  const c10::NoGradGuard no_grad;
  const Tensor equations = times(problem.A, x) + times(problem.B, z) + problem.p;
  const Tensor w = times(problem.C, x) + times(problem.M, z) + problem.q;
  return at::maximum(equations.abs().amax(-1), at::minimum(z, w).abs().amax(-1));
}

RolloutCertificate certify_steps(const Problem& problem, const Tensor& z, const Tensor& status,
                                 std::optional<double> tolerance,
                                 const std::function<Tensor(const Tensor& ties)>& kinked) {
  const c10::NoGradGuard no_grad;
  const Tensor ties = certify(problem.M, problem.q, z, tolerance).ties;
  return {(status != 0).sum(0), ties.any(-1).sum(0), kinked(ties).sum(0)};
}

Tensor kinked_friction(const Tensor& ties, const Tensor& gamma) {
  return ties.any(-1) & (ties.select(-1, -1) | (gamma > 0));
}

}  // namespace lcp::physics
