// lcp::solve through the public operator, beside a copy of its inputs, the floor of any solve.
#include <benchmark/benchmark.h>
#include <lcp/solve.h>
#include <torch/torch.h>

#include "support/problems.h"

namespace {

constexpr std::int64_t kBatch = 65536;

struct Inputs {
  torch::Tensor M, q;
};

// Traditional sliding blocks, n = 3: about half stick.
Inputs sliding_blocks(torch::Dtype dtype) {
  torch::manual_seed(0);
  const torch::Tensor M = torch::tensor({{1., -1., 1.}, {-1., 1., 1.}, {-1., -1., 0.}}, dtype).repeat({kBatch, 1, 1});
  const torch::Tensor v = torch::randn(kBatch, dtype);
  return {M, torch::stack({v, -v, torch::full_like(v, 0.7)}, -1)};
}

Inputs friction_blocks(std::int64_t batch) {
  std::mt19937_64 random(1);
  std::vector<torch::Tensor> M, q;
  for (std::int64_t b = 0; b < batch; ++b) {
    const auto problem = lcp::testing::friction_block(random, 4, 4);
    M.push_back(torch::tensor(at::ArrayRef<double>(problem.M.data(), problem.M.size()), torch::kDouble)
                    .view({problem.n(), problem.n()}));
    q.push_back(torch::tensor(at::ArrayRef<double>(problem.q.data(), problem.q.size()), torch::kDouble));
  }
  return {torch::stack(M), torch::stack(q)};
}

void per_problem(benchmark::State& state, std::int64_t batch) {
  state.SetItemsProcessed(state.iterations() * batch);
  state.counters["s_per_problem"] = benchmark::Counter(static_cast<double>(state.iterations() * batch),
                                                       benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

void copy_3x3(benchmark::State& state) {
  const Inputs inputs = sliding_blocks(torch::kDouble);
  const torch::Tensor M = torch::empty_like(inputs.M);
  const torch::Tensor q = torch::empty_like(inputs.q);
  for (auto _ : state) {
    M.copy_(inputs.M);
    q.copy_(inputs.q);
  }
  per_problem(state, kBatch);
}
BENCHMARK(copy_3x3)->Unit(benchmark::kMillisecond);

void forward_3x3(benchmark::State& state, torch::Dtype dtype) {
  const Inputs inputs = sliding_blocks(dtype);
  for (auto _ : state) benchmark::DoNotOptimize(lcp::solve(inputs.M, inputs.q).z);
  per_problem(state, kBatch);
}
BENCHMARK_CAPTURE(forward_3x3, float64, torch::kDouble)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(forward_3x3, float32, torch::kFloat)->Unit(benchmark::kMillisecond);

void forward_backward_3x3(benchmark::State& state) {
  const Inputs inputs = sliding_blocks(torch::kDouble);
  const torch::Tensor M = inputs.M.clone().requires_grad_();
  const torch::Tensor q = inputs.q.clone().requires_grad_();
  const torch::Tensor ones = torch::ones_like(q);
  for (auto _ : state) {
    const auto result = lcp::solve(M, q);
    benchmark::DoNotOptimize(torch::autograd::grad({result.z}, {M, q}, {ones}));
  }
  per_problem(state, kBatch);
}
BENCHMARK(forward_backward_3x3)->Unit(benchmark::kMillisecond);

void friction_24(benchmark::State& state) {
  const Inputs inputs = friction_blocks(500);
  for (auto _ : state) benchmark::DoNotOptimize(lcp::solve(inputs.M, inputs.q).z);
  per_problem(state, 500);
}
BENCHMARK(friction_24)->Unit(benchmark::kMillisecond);

// The basis of the solution, or that of a neighbour in the batch, proposed: what a guess saves, and what it costs.
void guessed(benchmark::State& state, const Inputs& inputs, bool right) {
  lcp::SolveOptions options;
  const torch::Tensor z = lcp::solve(inputs.M, inputs.q).z;
  options.guess = right ? z : z.roll(1, 0);
  for (auto _ : state) benchmark::DoNotOptimize(lcp::solve(inputs.M, inputs.q, options).z);
  per_problem(state, inputs.q.size(0));
}

void friction_24_guess(benchmark::State& state, bool right) { guessed(state, friction_blocks(500), right); }
BENCHMARK_CAPTURE(friction_24_guess, right, true)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(friction_24_guess, wrong, false)->Unit(benchmark::kMillisecond);

void forward_3x3_guess(benchmark::State& state, bool right) { guessed(state, sliding_blocks(torch::kDouble), right); }
BENCHMARK_CAPTURE(forward_3x3_guess, right, true)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(forward_3x3_guess, wrong, false)->Unit(benchmark::kMillisecond);

// The LU factors of the same matrices.
void lu_24(benchmark::State& state) {
  const Inputs inputs = friction_blocks(500);
  for (auto _ : state) benchmark::DoNotOptimize(at::linalg_lu_factor_ex(inputs.M));
  per_problem(state, 500);
}
BENCHMARK(lu_24)->Unit(benchmark::kMillisecond);

}  // namespace

int main(int argc, char** argv) {
  torch::set_num_threads(1);
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
