// A z that an algorithm proposes, verified on the data as they were given.
#pragma once

#include <optional>
#include <vector>

#include "linalg/basis.h"
#include "solver/scaled_problem.h"
#include "solver/settings.h"

namespace lcp::solver {

/// A pivot of a basis below this times the largest counts as 0.
inline constexpr double kNegligiblePivot = 1e-15;

/// A candidate and its w = M z + q in the units of ScaledProblem::matrix() and q(). Nothing that an algorithm says of
/// its z is believed: the violation of verify.h decides, first in these units, then for z and w in the caller's units.
/// Allocates in the constructor, as linalg::Basis does, and where z has to be rounded to float with care.
class Candidate {
 public:
  /// The first num_equations rows are equations: their z may have any sign, and their w is 0.
  Candidate(int n, const Settings& settings, int num_equations = 0);

  /// The candidate z 2^exponent.
  void set(const ScaledProblem& problem, const double* z, int exponent);
  /// Makes a z of the problem with the normalized matrix the candidate if it is a solution; returns whether it is.
  bool set_if_solution(ScaledProblem& problem, const double* z);
  void set_zero(const ScaledProblem& problem);  ///< where q >= 0
  /// The solution of the marked basis. Variables that a singular basis does not determine are taken from `near`: n, in
  /// the caller's units. A negative entry becomes 0.
  void set_basis(const ScaledProblem& problem, const unsigned char* marked, const double* near);

  /// Replaces the candidate by z 2^exponent where z 2^exponent has smaller residuals; returns whether it does.
  bool improve(const ScaledProblem& problem, const double* z, int exponent);
  /// Whether the candidate, in the caller's units and precision, is a solution: given_z() and given_w(). Not every
  /// solution is one there: z may be rounded to float, under- or overflow, and M and q may have lost digits when they
  /// were scaled.
  bool is_solution(const ScaledProblem& problem);
  /// Like is_solution, but a candidate that is not near round-off is first solved afresh with its basis, and the better
  /// one of the two is kept.
  bool accept(const ScaledProblem& problem, const unsigned char* basic);

  /// Whether is_solution has met a solution that is none in the caller's units and precision, since the last forget().
  bool has_lost_solution() const { return has_lost_solution_; }
  void forget() { has_lost_solution_ = false; }

  double violation() const { return violation_; }
  /// The error of the rows with small terms, see verify.h; 0 where they hold as well as the others, or need not.
  double row_residual(const ScaledProblem& problem);
  bool is_near_round_off() const;
  const double* w() const { return w_.data(); }

  /// The solution that is_solution found: exactly complementary, in the caller's units.
  const double* given_z() const { return given_z_.data(); }
  const double* given_w() const { return given_w_.data(); }

 private:
  bool give(const ScaledProblem& problem);
  bool give_w(const ScaledProblem& problem, bool exact);
  bool round_together(const ScaledProblem& problem);
  double violation_of(const ScaledProblem& problem, const double* z, double* w, double* terms, bool* rows_hold) const;
  double row_residual_of(const ScaledProblem& problem, const double* z, const double* w, const double* terms) const;
  linalg::Basis& basis();
  void solve_basis(const ScaledProblem& problem, const unsigned char* basic, double* z);
  bool refine_basis(const ScaledProblem& problem, bool keeps_open);

  double at_least_zero(int i, double x) const;

  int n_, num_equations_;
  double tolerance_;
  bool rounds_, minds_small_rows_;
  double violation_ = 0;
  bool rows_hold_ = false;              // whether rows hold to round-off of their own terms
  std::optional<double> row_residual_;  // the value of row_residual(), once it is known
  bool has_lost_solution_ = false;
  std::vector<double> z_, w_, given_z_, given_w_, trial_z_, trial_w_, terms_, trial_terms_, x_;
  std::optional<linalg::Basis> basis_;
};

}  // namespace lcp::solver
