#include "measure.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>

#include <utility>

namespace lcp::bench {

benchmark::internal::Benchmark* add(const std::string& name, std::int64_t problems,
                                    std::function<Work(benchmark::State&)> prepare) {
  const auto run = [problems, prepare = std::move(prepare)](benchmark::State& state) {
    const Work work = prepare(state);
    for (auto _ : state) work();
    state.counters["problems"] = static_cast<double>(problems);
  };
  return benchmark::RegisterBenchmark(name.c_str(), run)->UseRealTime();
}

Work copying(const at::Tensor& M, const at::Tensor& q) {
  return [=, to_M = M.clone(), to_q = q.clone()] {
    to_M.copy_(M);
    to_q.copy_(q);
  };
}

Work solving(const at::Tensor& M, const at::Tensor& q, const SolveOptions& options) {
  return [=] { benchmark::DoNotOptimize(solve(M, q, options).z); };
}

Work differentiating(const at::Tensor& M_given, const at::Tensor& q_given, const SolveOptions& options) {
  const at::Tensor M = M_given.clone().requires_grad_();
  const at::Tensor q = q_given.clone().requires_grad_();
  return [=, ones = at::ones_like(q)] {
    benchmark::DoNotOptimize(torch::autograd::grad({solve(M, q, options).z}, {M, q}, {ones}));
  };
}

Work factoring(const at::Tensor& M) {
  return [=] { benchmark::DoNotOptimize(at::linalg_lu_factor_ex(M)); };
}

CheckResult check_solve(const ProblemSet& set, const SolveOptions& options) {
  const SolveResult result = solve(set.M, set.q, options);
  return check(set, result.z, result.status == 0);
}

void report(benchmark::State& state, const CheckResult& checked, std::int64_t total) {
  state.counters["tried"] = static_cast<double>(total);
  state.counters["solved"] = static_cast<double>(checked.solved);
  state.counters["false_claims"] = static_cast<double>(checked.false_claims);
}

}  // namespace lcp::bench
