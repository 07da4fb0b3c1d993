// Checks a solver's answer to a problem against the definitions of lcp/status.h and solver/verify.h.
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
  Eigen::VectorXd farkas;  ///< for kInfeasible the vector that proves it, else empty
  std::int64_t pivots;
};

/// Solves the problem by Ladder and again by BatchSolver, as a batch of one. Returns the answer of Ladder, unless that
/// of BatchSolver has an error (see answer_error) or lacks a solution that Ladder found. guess: n values, or empty.
Answer solve(const Problem& problem, const solver::Settings& settings = {}, const Eigen::VectorXd& guess = {});

/// Whether z >= 0, with a w that a double can hold, satisfies the rule of solver/verify.h with this tolerance; the sums
/// are computed exactly.
bool is_solution(const Problem& problem, const Eigen::VectorXd& z, double tolerance);

/// Describes the first way in which the answer contradicts the definition of its status, the problem or the settings;
/// empty if the answer is correct. The sums are computed exactly, independently of the solver's checks. A residual may
/// exceed the tolerance by 2 %, since the solver computes its residual with rounding.
std::string answer_error(const Problem& problem, const solver::Settings& settings, const Answer& answer);

/// Status, M, q, z and w as text, with hexadecimal numbers that can be copied into a test.
std::string describe(const Problem& problem, const Answer& answer);

}  // namespace lcp::testing
