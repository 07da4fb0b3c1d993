// A z that an algorithm proposes, verified on the data as they were given.
#pragma once

#include <optional>
#include <vector>

#include "linalg/basis.h"
#include "solver/scaled_problem.h"
#include "solver/settings.h"

namespace lcp::solver {

/// A candidate and its w = M z + q in the units of ScaledProblem::matrix() and q(). Whether it is
/// a solution is decided by its violation (verify.h), never by what the algorithm reports. Allocates in the
/// constructor, and as linalg::Basis does.
class Candidate {
 public:
  Candidate(int n, const Settings& settings);

  /// The candidate z 2^exponent.
  void set(const ScaledProblem& problem, const double* z, int exponent);
  void set_zero(const ScaledProblem& problem);  ///< where q >= 0
  /// The solution of the marked basis. Variables that a singular basis does not determine are taken from `near`: n, in
  /// the caller's units. A negative entry becomes 0.
  void set_basis(const ScaledProblem& problem, const unsigned char* marked, const double* near);

  /// Replaces the candidate by z 2^exponent where that violates less; returns whether it does.
  bool improve(const ScaledProblem& problem, const double* z, int exponent);
  /// Whether the candidate is a solution. One that is not near round-off is first solved afresh with its basis, and the
  /// better of the two kept.
  bool accept(const ScaledProblem& problem, const unsigned char* basic);

  bool is_solution() const { return violation_ <= 1; }
  bool is_near_round_off() const;
  bool is_finite() const;  ///< whether the violation is finite
  const double* w() const { return w_.data(); }

  /// z and w in the caller's units, exactly complementary. False where that is no solution: z may be rounded to float,
  /// under- or overflow, and M and q may have lost digits when they were scaled.
  bool write(const ScaledProblem& problem, double* z, double* w);

 private:
  double violation_of(const ScaledProblem& problem, const double* z, double* w) const;
  linalg::Basis& basis();
  void solve_basis(const ScaledProblem& problem, const unsigned char* basic, double* z);

  int n_;
  double tolerance_;
  bool single_precision_;
  double violation_ = 0;
  std::vector<double> z_, w_, trial_z_, trial_w_, x_;
  std::optional<linalg::Basis> basis_;
};

}  // namespace lcp::solver
