// Small LCPs of integers, answered in exact arithmetic.
#pragma once

#include "support/problems.h"

namespace lcp::testing {

struct Truth {
  bool feasible;  ///< some z >= 0 has M z + q >= 0
  bool solvable;  ///< some such z has z'(M z + q) = 0 besides
};

/// n <= 5, entries integers of at most 32. Slow on purpose: tries all bases, of singular matrices too.
Truth truth_of(const Problem& problem);

}  // namespace lcp::testing
