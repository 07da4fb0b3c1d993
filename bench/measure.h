// How the benchmarks are registered, and what each of them reports.
#pragma once

#include <benchmark/benchmark.h>
#include <lcp/solve.h>

#include <cstdint>
#include <functional>
#include <string>

#include "problem_set.h"

namespace lcp::bench {

/// What a benchmark times.
using Work = std::function<void()>;

/// Registers a benchmark of wall time, on one thread unless the work says otherwise. Each repetition calls `prepare`,
/// which is not timed, and then times the work that it returns.
///   name: "group/problem/who", such as "family/p_4/ours".
///   problems: the number of problems that the work solves; the report gives the time for each of them.
benchmark::internal::Benchmark* add(const std::string& name, std::int64_t problems,
                                    std::function<Work(benchmark::State&)> prepare);

/// Copies M and q into memory that is already allocated: the floor of any solve that has to read them.
Work copying(const at::Tensor& M, const at::Tensor& q);

/// Calls the public operator.
Work solving(const at::Tensor& M, const at::Tensor& q, const SolveOptions& options = {});

/// The same and the gradients of sum(z) with respect to M and q.
Work differentiating(const at::Tensor& M, const at::Tensor& q, const SolveOptions& options = {});

/// The LU factors of M, by LibTorch.
Work factoring(const at::Tensor& M);

/// Solves the whole set by the operator, and checks its claims.
CheckResult check_solve(const ProblemSet& set, const SolveOptions& options = {});

/// Reports how many of `total` problems the timed solver solved.
void report(benchmark::State& state, const CheckResult& checked, std::int64_t total);

/// Register the groups; what each measures stands at the top of its file.
void add_batches();
void add_contacts();
void add_curves();
void add_families();
void add_friction();
void add_machine();
void add_memory();
void add_rollouts();
void add_training_step();

}  // namespace lcp::bench
