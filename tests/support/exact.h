// Small LCPs of integers, answered in exact arithmetic.
#pragma once

#include <functional>

#include "support/problems.h"

namespace lcp::testing {

/// Whether `accept` takes the z of some extreme point of the set of solutions, which is not empty if the problem has a
/// solution. z is rounded to double. Entries of M and q: integers; throws where squares of minors of (M, q) may have
/// more than 127 bits, which n = 4 with entries of at most 2^14 do not have. Those of n <= 10 with entries of at most 2
/// have at most 63, which is faster.
bool any_solution(const Problem& problem, const std::function<bool(const Eigen::VectorXd& z)>& accept);

struct Truth {
  bool feasible;  ///< some z >= 0 has M z + q >= 0
  bool solvable;  ///< some such z has z'(M z + q) = 0 besides
};

/// n <= 5, entries integers of at most 32. Slow on purpose: tries all bases, of singular matrices too.
Truth truth_of(const Problem& problem);

}  // namespace lcp::testing
