#include "linalg/basis.h"

#include <algorithm>
#include <cmath>

#include "linalg/equilibrate.h"

namespace lcp::linalg {
namespace {

using RowMatrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

// From this size on M_aa is factored by blocks first. Their factors are kept where the reciprocal of the condition
// number in the 1-norm is estimated to be larger than this.
constexpr int kBlocked = 256;
constexpr double kClearCondition = 1e-6;

}  // namespace

Basis::Basis(int n, double negligible) : n_(n), negligible_(negligible), index_(n), lu_(n, Pivoting::kFull) {}

void Basis::factor(const double* M, const unsigned char* marked) {
  M_ = M;
  k_ = 0;
  for (int i = 0; i < n_; ++i) {
    if (marked[i]) index_[k_++] = i;
  }
  is_blocked_ = false;
  inverse_is_ = kUnset;
  if (k_ >= kBlocked) {
    RowMatrix A(k_, k_);
    copy_to(A.data());
    blocked_.compute(A);
    is_blocked_ = blocked_.rcond() > kClearCondition;
  }
  if (is_blocked_) {
    pivots_ = k_;
    is_clear_ = true;
    return;
  }
  copy_to(lu_.matrix(k_));
  pivots_ = lu_.factor(negligible_);
  is_clear_ = regular() && lu_.last_pivot() > kClearPivot * lu_.first_pivot();
}

void Basis::copy_to(double* target) const {
  for (int i = 0; i < k_; ++i) {
    const double* source = M_ + static_cast<std::size_t>(index_[i]) * n_;
    for (int j = 0; j < k_; ++j) *target++ = source[index_[j]];
  }
}

void Basis::solve(double* x) {
  if (!is_clear_) return inverse_.solve(prepare_inverse(), x);
  if (!is_blocked_) return lu_.solve(x);
  Eigen::Map<Eigen::VectorXd> vector(x, k_);
  vector = blocked_.solve(vector).eval();
}

void Basis::solve_transposed(double* x) {
  if (!is_clear_) return inverse_.solve_transposed(prepare_inverse(), x);
  if (!is_blocked_) return lu_.solve_transposed(x);
  Eigen::Map<Eigen::VectorXd> vector(x, k_);
  vector = blocked_.transpose().solve(vector).eval();
}

void Basis::solve_near(double* b, double* x) {
  if (!is_blocked_) return lu_.solve_near(b, x);
  std::copy_n(b, k_, x);
  solve(x);
}

int Basis::rank() { return regular() ? k_ : prepare_inverse().pivots(); }

// Sets inverse_, once for each M_aa; returns its factors.
const Lu& Basis::prepare_inverse() {
  if (inverse_is_ == kOfLu) return lu_;
  if (inverse_is_ == kOfEquilibrated) return *equilibrated_;
  if (pivots_ > 0 && lu_.last_pivot() > kClearPivot * lu_.first_pivot() && lu_.rest_is_negligible(negligible_)) {
    inverse_is_ = kOfLu;
    inverse_.set(lu_);
    return lu_;
  }
  inverse_is_ = kOfEquilibrated;
  if (!equilibrated_) equilibrated_.emplace(n_, Pivoting::kFull);
  double* const B = equilibrated_->matrix(k_);
  copy_to(B);
  std::vector<int> r(k_), c(k_), more_r(k_), more_c(k_);
  remove_units(k_, B, r.data(), c.data());
  equilibrate(k_, B, more_r.data(), more_c.data());
  for (int i = 0; i < k_; ++i) {
    r[i] += more_r[i];
    c[i] += more_c[i];
  }
  equilibrated_->factor(negligible_);
  inverse_.set(*equilibrated_, r.data(), c.data());
  return *equilibrated_;
}

}  // namespace lcp::linalg
