// Small LCPs of integers, answered in exact arithmetic.
#pragma once

#include <functional>

#include "support/problems.h"

namespace lcp::testing {

/// Whether `accept` takes the z of some extreme point of the set of solutions, which is not empty if the problem has a
/// solution. z is rounded to double. Entries of M and q: integers; throws where minors of their order n might overflow,
/// which n <= 10 with entries of at most 2, and n <= 9 with entries of at most 3, do not.
bool any_solution(const Problem& problem, const std::function<bool(const Eigen::VectorXd& z)>& accept);

struct Truth {
  bool feasible;  ///< some z >= 0 has M z + q >= 0
  bool solvable;  ///< some such z has z'(M z + q) = 0 besides
};

/// n <= 5, entries integers of at most 32. Slow on purpose: tries all bases, of singular matrices too.
Truth truth_of(const Problem& problem);

}  // namespace lcp::testing
