// How an algorithm's run ends.
#pragma once

namespace lcp::solver {

enum class End {
  kClaim,  ///< it has a z to offer, which nobody has verified yet
  kStuck,  ///< it cannot go on: a ray, a singular matrix, no basis left
  kLimit,  ///< its budget ran out
};

}  // namespace lcp::solver
