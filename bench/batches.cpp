// batch/: large batches of small problems, each with its own M, with one M for all (shared), or with that M repeated in
// memory; sizes/: batches of unequal size; thread/: the same work on one and on two threads; guess/: the effect of a
// proposed active set.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <cstdint>
#include <string>
#include <thread>
#include <tuple>

#include "measure.h"

namespace lcp::bench {
namespace {

constexpr std::int64_t kBatch = 65536;

enum class M { kBatched, kShared, kRepeated };

void add_batch(const std::string& name) {
  const auto add_work = [&](const std::string& who, Work (*prepare)(const at::Tensor&, const at::Tensor&), M kind,
                            at::ScalarType dtype) {
    add("batch/" + name + "/" + who, kBatch, [=](benchmark::State& state) {
      const ProblemSet& set = problem_set(name, kBatch);
      at::Tensor matrix = set.M.to(dtype);
      if (kind != M::kBatched) matrix = matrix[0];
      if (kind == M::kRepeated) matrix = matrix.expand_as(set.M).contiguous();
      if (who == "forward") report(state, check_solve(set), kBatch);
      return prepare(matrix, set.q.to(dtype));
    });
  };
  const auto forward = [](const at::Tensor& matrix, const at::Tensor& q) { return solving(matrix, q); };
  add_work("copy", copying, M::kBatched, at::kDouble);
  add_work("forward", forward, M::kBatched, at::kDouble);
  add_work("forward float32", forward, M::kBatched, at::kFloat);
  add_work("forward shared", forward, M::kShared, at::kDouble);
  add_work("forward repeated", forward, M::kRepeated, at::kDouble);
  const auto both = [](const at::Tensor& matrix, const at::Tensor& q) { return differentiating(matrix, q); };
  add_work("forward and backward", both, M::kBatched, at::kDouble);
  add_work("forward and backward float32", both, M::kBatched, at::kFloat);
  add_work("forward and backward shared", both, M::kShared, at::kDouble);
}

// P-matrices: of size n all, or of sizes 1 to n in turn or sorted.
void add_sizes(std::int64_t n) {
  const std::string set = "p_" + std::to_string(n);
  const auto add_work = [&](const std::string& order, bool gradient) {
    add("sizes/" + set + "/" + order + (gradient ? ", forward and backward" : ""), kBatch, [=](benchmark::State&) {
      const ProblemSet& problems = problem_set(set, kBatch);
      SolveOptions options;
      if (order != "all") options.sizes = 1 + at::arange(kBatch, at::kLong).remainder(n);
      if (order == "sorted") options.sizes = std::get<0>(options.sizes->sort());
      return gradient ? differentiating(problems.M, problems.q, options) : solving(problems.M, problems.q, options);
    });
  };
  for (const char* order : {"all", "mixed", "sorted"}) add_work(order, false);
  for (const char* order : {"all", "mixed"}) add_work(order, true);
}

void add_threads(const std::string& name, std::int64_t count) {
  for (const int threads : {1, 2}) {
    if (threads > static_cast<int>(std::thread::hardware_concurrency())) continue;
    const std::string who = std::to_string(threads) + (threads == 1 ? " thread" : " threads");
    add("thread/" + name + "/" + who, count, [=](benchmark::State&) -> Work {
      const ProblemSet& set = problem_set(name, count);
      // Set in every iteration, since the benchmarks take turns.
      return [threads, work = solving(set.M, set.q)] {
        at::set_num_threads(threads);
        work();
        at::set_num_threads(1);
      };
    });
  }
}

void add_guesses(const std::string& name, std::int64_t count) {
  for (const char* who : {"none", "right", "wrong"}) {
    add("guess/" + name + "/" + who, count, [=](benchmark::State&) {
      const ProblemSet& set = problem_set(name, count);
      SolveOptions options;
      const at::Tensor z = solve(set.M, set.q).z;
      if (who == std::string("right")) options.guess = z;
      if (who == std::string("wrong")) options.guess = z.roll(1, 0);  // that of the next element in the batch
      return solving(set.M, set.q, options);
    });
  }
}

}  // namespace

void add_batches() {
  for (const char* name : {"sliding_3", "p_2", "p_3", "p_4", "p_6", "friction_4", "friction_6"}) add_batch(name);
  for (const std::int64_t n : {4, 8, 16}) add_sizes(n);
  add_threads("sliding_3", kBatch);
  add_threads("friction_24", 2000);
  add_guesses("sliding_3", kBatch);
  add_guesses("friction_24", 2000);
}

}  // namespace lcp::bench
