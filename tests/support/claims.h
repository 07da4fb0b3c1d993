// What a solver says of a problem, held against the definitions of lcp/status.h and solver/verify.h.
#pragma once

#include <cstdint>
#include <string>

#include "lcp/status.h"
#include "solver/ladder.h"
#include "support/problems.h"

namespace lcp::testing {

struct Answer {
  Status status;
  Eigen::VectorXd z, w;
  Eigen::VectorXd farkas;  ///< the proof of kInfeasible; else empty
  std::int64_t pivots;
};

/// By the ladder alone and as a batch of one: the answer of the first, or that of the second where it keeps or finds
/// less. guess: n values, or empty.
Answer solve(const Problem& problem, const solver::Settings& settings = {}, const Eigen::VectorXd& guess = {});

/// Empty if the answer keeps every promise, else which it breaks. All sums are exact, so that nothing depends on how
/// the solver checks itself; a residual may exceed what is allowed by 2 %, as the solver's own sums may.
std::string broken_promise(const Problem& problem, const solver::Settings& settings, const Answer& answer);

/// Status, M, q, z and w in hexadecimal, to copy into a test.
std::string describe(const Problem& problem, const Answer& answer);

}  // namespace lcp::testing
