// The problems that every solver of the benchmarks gets, by the generators of the tests.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "support/problems.h"

namespace lcp::bench {

/// Problems of one order n, drawn with a fixed seed; the first ones are the same for every count.
struct ProblemSet {
  std::vector<testing::Problem> problems;
  at::Tensor M;  ///< [count, n, n], float64, contiguous
  at::Tensor q;  ///< [count, n]

  int n() const { return static_cast<int>(q.size(1)); }
  std::int64_t count() const { return q.size(0); }
};

/// The set of that name, generated once. Names are kind_n:
///   sliding_3   traditional sliding blocks, all with the same M; about half of them stick
///   p_n         P-matrices, neither symmetric nor definite
///   definite_n  symmetric positive definite
///   friction_n  one step of a rigid block: n = 4 (1 contact, 2 directions), 6 (1, 4) or 24 (4, 4)
///   banded_n    an obstacle problem of 25 x n / 25 points, bandwidth 25
/// Throws std::invalid_argument for any other.
const ProblemSet& problem_set(const std::string& name, std::int64_t count);

/// How many problems a solver solved, by the same check for all of them.
struct CheckResult {
  std::int64_t solved = 0;        ///< claimed, and r(z) <= 1e-9 max|q|
  std::int64_t false_claims = 0;  ///< claimed, and not
};

/// z: [count, n]. claims: [count], bool, what the solver itself says of each.
CheckResult check(const ProblemSet& set, const at::Tensor& z, const at::Tensor& claims);

}  // namespace lcp::bench
