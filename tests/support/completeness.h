// Whether a solver misses solutions: its answers to LCPs of n <= 10 against those of an exact enumeration.
#pragma once

#include <functional>
#include <random>
#include <vector>

#include "support/claims.h"

namespace lcp::testing {

enum class Verdict {
  kSolved,
  kInfeasible,
  kUnsolvable,       ///< not solved, and it has no solution
  kUnrepresentable,  ///< not solved; each extreme point of its solutions violates the rule of verify.h when rounded
  kMissed,           ///< not solved, but a rounded extreme point of its solutions is a solution by that rule
  kFalse             ///< the answer contradicts its status
};

/// A problem of integers (see exact.h) in other units: 2^rows M 2^columns, 2^rows q.
struct IntegerProblem {
  Problem integers;
  Eigen::VectorXi rows, columns;  ///< exponents

  Problem problem() const;
};

/// The verdict on the answer of Ladder and BatchSolver, see claims.h.
Verdict verdict(const IntegerProblem& problem, const solver::Settings& settings);

/// Families of integer problems of n = 1..10 that are hard for their degeneracy: few distinct entries, many zeros, low
/// rank, ties, friction cones, also of light and heavy bodies, bounds, products of other integers; half of them in
/// units of up to 2^12.
struct IntegerFamily {
  const char* name;
  int smallest, largest;  ///< n
  std::function<Problem(std::mt19937_64& random, int n)> make;
};
const std::vector<IntegerFamily>& integer_families();
/// A random problem of the family, in units of 1 or, as often, random ones for each row and column.
IntegerProblem draw(std::mt19937_64& random, const IntegerFamily& family);

}  // namespace lcp::testing
