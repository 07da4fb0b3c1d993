#include "solver/candidate.h"

#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

#include "linalg/scale.h"
#include "solver/closest_vector.h"
#include "solver/verify.h"

namespace lcp::solver {
namespace {

// A violation below this, relative to the scales of the rows, is as small as a second solve of the basis would leave.
constexpr double kNearRoundOff = 1e-13;

// Steps of iterative refinement of a basis: the first brings small variables beside large ones to full precision.
constexpr int kRefinements = 2;

// The largest number of variables that are rounded to float together.
constexpr Eigen::Index kRoundedTogether = 16;

}  // namespace

Candidate::Candidate(int n, const Settings& settings, int num_equations)
    : n_(n),
      num_equations_(num_equations),
      tolerance_(settings.tolerance),
      rounds_(settings.single_precision && !settings.derived),
      minds_small_rows_(!settings.derived),
      z_(n),
      w_(n),
      given_z_(n),
      given_w_(n),
      trial_z_(n),
      trial_w_(n),
      terms_(n),
      trial_terms_(n),
      x_(n) {}

// z_i for the solution x of an equation of its basis: any sign for an unknown of an equation, else >= 0.
double Candidate::at_least_zero(int i, double x) const { return i < num_equations_ ? x : std::max(0.0, x); }

double Candidate::violation_of(const ScaledProblem& problem, const double* z, double* w, double* terms,
                               bool* rows_hold) const {
  return solver::violation(problem.matrix(), num_equations_, problem.q(), z, tolerance_, w, terms, rows_hold);
}

double Candidate::row_residual_of(const ScaledProblem& problem, const double* z, const double* w,
                                  const double* terms) const {
  if (!problem.has_small_row()) return 0;
  for (int i = 0; i < n_; ++i) {
    if (row_error(z[i], w[i]) > kSmallRowResidual * terms[i] && problem.is_small_row(i)) {
      return solver::row_residual(n_, problem.q(), z, w, terms, problem.row_units());
    }
  }
  return 0;
}

double Candidate::row_residual(const ScaledProblem& problem) {
  if (!minds_small_rows_) return 0;
  if (!row_residual_) row_residual_ = rows_hold_ ? 0 : row_residual_of(problem, z_.data(), w_.data(), terms_.data());
  return *row_residual_;
}

bool Candidate::is_near_round_off() const { return violation_ * tolerance_ <= kNearRoundOff; }

void Candidate::set(const ScaledProblem& problem, const double* z, int exponent) {
  linalg::PowerOfTwo(exponent).scale(z, z_.size(), z_.data());
  violation_ = violation_of(problem, z_.data(), w_.data(), terms_.data(), &rows_hold_);
  row_residual_.reset();
}

bool Candidate::set_if_solution(ScaledProblem& problem, const double* z) {
  const linalg::Rows M = {n_, problem.normalized_matrix(), problem.matrix().spans};
  violation_ = solver::violation(M, num_equations_, problem.q(), z, tolerance_, w_.data(), terms_.data(), &rows_hold_);
  row_residual_.reset();
  if (!(violation_ <= 1)) return false;
  linalg::PowerOfTwo(-problem.normalized_exponent()).scale(z, z_.size(), z_.data());
  return true;
}

void Candidate::set_zero(const ScaledProblem& problem) {
  std::fill(z_.begin(), z_.end(), 0.0);
  std::copy_n(problem.q(), n_, w_.begin());
  violation_ = 0;
  row_residual_ = 0;
}

void Candidate::set_basis(const ScaledProblem& problem, const unsigned char* marked, const double* near) {
  basis().factor(problem.matrix().M, marked);
  const linalg::PowerOfTwo to_scale(problem.matrix_exponent() - problem.vector_exponent());
  for (int i = 0; i < basis_->size(); ++i) {
    trial_w_[i] = -problem.q()[basis_->indices()[i]];
    x_[i] = to_scale(near[basis_->indices()[i]]);
  }
  basis_->solve_near(trial_w_.data(), x_.data());
  std::fill(z_.begin(), z_.end(), 0.0);
  for (int i = 0; i < basis_->size(); ++i) z_[basis_->indices()[i]] = at_least_zero(basis_->indices()[i], x_[i]);
  violation_ = violation_of(problem, z_.data(), w_.data(), terms_.data(), &rows_hold_);
  row_residual_.reset();
}

bool Candidate::improve(const ScaledProblem& problem, const double* z, int exponent) {
  linalg::PowerOfTwo(exponent).scale(z, trial_z_.size(), trial_z_.data());
  bool trial_holds = false;
  const double trial = violation_of(problem, trial_z_.data(), trial_w_.data(), trial_terms_.data(), &trial_holds);
  std::optional<double> trial_row_residual;
  bool better = trial < violation_;
  if (trial <= 1 && violation_ <= 1 && row_residual_.value_or(0) > 0) {
    trial_row_residual =
        trial_holds ? 0 : row_residual_of(problem, trial_z_.data(), trial_w_.data(), trial_terms_.data());
    better = std::max(trial * tolerance_, *trial_row_residual) < std::max(violation_ * tolerance_, *row_residual_);
  }
  if (!better) return false;
  violation_ = trial;
  rows_hold_ = trial_holds;
  row_residual_ = trial_row_residual;
  terms_.swap(trial_terms_);
  z_.swap(trial_z_);
  w_.swap(trial_w_);
  return true;
}

bool Candidate::accept(const ScaledProblem& problem, const unsigned char* basic) {
  // The elimination of equations loses digits.
  if (num_equations_ > 0 || !is_near_round_off() || row_residual(problem) > 0) {
    solve_basis(problem, basic, trial_z_.data());
    improve(problem, trial_z_.data(), 0);
    const auto is_open = [&] { return violation_ > 1 || row_residual(problem) > 0; };
    for (const bool keeps_open : {false, true}) {
      for (int k = 0; k < kRefinements && is_open() && refine_basis(problem, keeps_open); ++k) {
      }
    }
  }
  return is_solution(problem);
}

linalg::Basis& Candidate::basis() {
  if (!basis_) basis_.emplace(n_, kNegligiblePivot);
  return *basis_;
}

void Candidate::solve_basis(const ScaledProblem& problem, const unsigned char* basic, double* z) {
  basis().factor(problem.matrix().M, basic);
  for (int i = 0; i < basis_->size(); ++i) x_[i] = -problem.q()[basis_->indices()[i]];
  basis_->solve(x_.data());
  std::fill_n(z, n_, 0.0);
  for (int i = 0; i < basis_->size(); ++i) z[basis_->indices()[i]] = at_least_zero(basis_->indices()[i], x_[i]);
}

// Takes one step of iterative refinement with the basis of solve_basis; returns whether it improves the candidate. The
// residuals are computed in twice the precision, since w_ is no more accurate than the rule needs. keeps_open:
// variables that a singular basis does not determine keep their values, instead of becoming the smallest ones.
bool Candidate::refine_basis(const ScaledProblem& problem, bool keeps_open) {
  for (int k = 0; k < basis_->size(); ++k) {
    const int i = basis_->indices()[k];
    const double* const row = problem.matrix().M + static_cast<std::ptrdiff_t>(i) * n_;
    (keeps_open ? trial_w_ : x_)[k] = -accurate_sum(n_, row, z_.data(), problem.q()[i]);
  }
  if (keeps_open) {
    std::fill(x_.begin(), x_.end(), 0.0);
    basis_->solve_near(trial_w_.data(), x_.data());
  } else {
    basis_->solve(x_.data());
  }
  trial_z_ = z_;
  for (int i = 0; i < basis_->size(); ++i) {
    const int target = basis_->indices()[i];
    trial_z_[target] = at_least_zero(target, trial_z_[target] + x_[i]);
  }
  return improve(problem, trial_z_.data(), 0);
}

bool Candidate::is_solution(const ScaledProblem& problem) {
  if (!(violation_ <= 1)) return false;
  const bool given = give(problem);
  has_lost_solution_ = has_lost_solution_ || !given;
  return given;
}

// Fills given_z and given_w; returns whether they are a solution.
bool Candidate::give(const ScaledProblem& problem) {
  const int z_exponent = problem.vector_exponent() - problem.matrix_exponent();
  const bool exact = linalg::PowerOfTwo(z_exponent).scale(z_.data(), z_.size(), given_z_.data()) && !rounds_;
  if (!rounds_) return give_w(problem, exact);
  std::transform(given_z_.begin(), given_z_.end(), given_z_.begin(), [](double x) { return static_cast<float>(x); });
  return give_w(problem, false) || (round_together(problem) && give_w(problem, false));
}

// Fills given_w for given_z; exact: whether given_z is z in other units.
bool Candidate::give_w(const ScaledProblem& problem, bool exact) {
  double* const z = given_z_.data();
  double* const w = given_w_.data();
  if (!problem.is_exact()) {
    if (!(solver::violation(problem.given(), num_equations_, problem.given_q(), z, tolerance_, w) <= 1)) return false;
  } else {
    const double* scaled_w = w_.data();
    if (!exact) {
      const int z_exponent = problem.vector_exponent() - problem.matrix_exponent();
      linalg::PowerOfTwo(-z_exponent).scale(z, given_z_.size(), trial_z_.data());
      if (!(violation_of(problem, trial_z_.data(), trial_w_.data(), nullptr, nullptr) <= 1)) return false;
      scaled_w = trial_w_.data();
    }
    linalg::PowerOfTwo(problem.vector_exponent()).scale(scaled_w, w_.size(), w);
  }
  for (int i = 0; i < n_; ++i) {
    w[i] = i < num_equations_ || z[i] > 0 ? 0.0 : std::max(0.0, w[i]);
    if (rounds_) w[i] = static_cast<float>(w[i]);
  }
  return std::isfinite(linalg::largest_magnitude(z, given_z_.size())) &&
         std::isfinite(linalg::largest_magnitude(w, given_w_.size()));
}

// Rounds z to floats together, where each z_i, rounded by itself, violates its equations. Some of these floats may be a
// few units in the last place away from z_i.
bool Candidate::round_together(const ScaledProblem& problem) {
  std::vector<int> basic;
  for (int i = 0; i < n_; ++i) {
    if (i < num_equations_ || z_[i] > 0) basic.push_back(i);
  }
  const auto k = static_cast<Eigen::Index>(basic.size());
  if (k == 0 || k > kRoundedTogether) return false;
  const int z_exponent = problem.vector_exponent() - problem.matrix_exponent();
  const double largest_q = linalg::largest_magnitude(problem.q(), w_.size());
  Eigen::MatrixXd spaced(k, k);  // the equations in units of their scales, for steps from float to float
  Eigen::VectorXd spacing(k), steps(k);
  for (Eigen::Index j = 0; j < k; ++j) {
    const int exponent = linalg::exponent_of(given_z_[basic[j]]) - std::numeric_limits<float>::digits;
    spacing[j] = std::ldexp(1.0, std::max(exponent, -149) - z_exponent);
    steps[j] = z_[basic[j]] / spacing[j];
  }
  for (Eigen::Index i = 0; i < k; ++i) {
    const double* const row = problem.matrix().M + static_cast<std::ptrdiff_t>(basic[i]) * n_;
    double terms = std::abs(problem.q()[basic[i]]);
    for (Eigen::Index j = 0; j < k; ++j) terms += std::abs(row[basic[j]] * z_[basic[j]]);
    const double scale = scale_of_row(terms, largest_q);
    for (Eigen::Index j = 0; j < k; ++j) spaced(i, j) = row[basic[j]] * spacing[j] / scale;
  }
  if (!spaced.allFinite() || !steps.allFinite()) return false;
  const Eigen::VectorXd rounded = closest_vector(spaced, steps);
  for (Eigen::Index j = 0; j < k; ++j) {
    if (basic[j] >= num_equations_ && rounded[j] < 0) return false;
    given_z_[basic[j]] = static_cast<float>(std::ldexp(rounded[j] * spacing[j], z_exponent));
  }
  return true;
}

}  // namespace lcp::solver
