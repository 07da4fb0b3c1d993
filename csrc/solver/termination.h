// The end of a run of one algorithm.
#pragma once

namespace lcp::solver {

enum class Termination {
  kCandidate,  ///< it offers a z, which has not been verified yet
  kFailed,     ///< it cannot go on: a ray, a singular matrix, no basis left to try
  kBudget,     ///< its pivots, bases or steps are spent
};

}  // namespace lcp::solver
