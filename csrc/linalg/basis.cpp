#include "linalg/basis.h"

#include <Eigen/QR>
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
  if (!is_clear_) return solve_carefully(x, false);
  if (!is_blocked_) return lu_.solve(x);
  Eigen::Map<Eigen::VectorXd> vector(x, k_);
  vector = blocked_.solve(vector).eval();
}

void Basis::solve_transposed(double* x) {
  if (!is_clear_) return solve_carefully(x, true);
  if (!is_blocked_) return lu_.solve_transposed(x);
  Eigen::Map<Eigen::VectorXd> vector(x, k_);
  vector = blocked_.transpose().solve(vector).eval();
}

void Basis::solve_near(double* b, double* x) {
  if (!is_blocked_) return lu_.solve_near(b, x);
  std::copy_n(b, k_, x);
  solve(x);
}

namespace {

// x minus its part in the columns' span.
Eigen::VectorXd without(const Eigen::MatrixXd& columns, const Eigen::VectorXd& x) {
  const Eigen::HouseholderQR<Eigen::MatrixXd> qr(columns);
  const Eigen::MatrixXd q = qr.householderQ() * Eigen::MatrixXd::Identity(columns.rows(), columns.cols());
  return x - q * (q.transpose() * x);
}

}  // namespace

// 2^-r A 2^-c with rows and columns of like size, for A = M_aa or its transpose.
Eigen::MatrixXd Basis::equilibrated(bool transposed, int* r, int* c) const {
  RowMatrix B(k_, k_);
  copy_to(B.data());
  std::vector<int> more_r(k_), more_c(k_);
  remove_units(k_, B.data(), r, c);
  equilibrate(k_, B.data(), more_r.data(), more_c.data());
  for (int i = 0; i < k_; ++i) {
    r[i] += more_r[i];
    c[i] += more_c[i];
  }
  if (!transposed) return B;
  std::swap_ranges(r, r + k_, c);
  return B.transpose();
}

int Basis::rank() const {
  if (regular()) return k_;
  std::vector<int> r(k_), c(k_);
  Eigen::FullPivLU<Eigen::MatrixXd> lu(equilibrated(false, r.data(), c.data()));
  lu.setThreshold(negligible_);
  return static_cast<int>(lu.rank());
}

// The rank is decided where rows and columns are of like size, B = 2^-r A 2^-c; the norms that are minimised are those
// of A x - b and x themselves.
void Basis::solve_carefully(double* x, bool transposed) const {
  if (pivots_ == 0) {  // M_aa = 0
    std::fill_n(x, k_, 0.0);
    return;
  }
  std::vector<int> r(k_), c(k_);
  const Eigen::MatrixXd B = equilibrated(transposed, r.data(), c.data());
  const auto scaled = [](Eigen::MatrixXd vectors, const std::vector<int>& exponents) {
    for (Eigen::Index i = 0; i < vectors.rows(); ++i) {
      for (Eigen::Index j = 0; j < vectors.cols(); ++j) vectors(i, j) = std::ldexp(vectors(i, j), -exponents[i]);
    }
    return vectors;
  };

  Eigen::FullPivLU<Eigen::MatrixXd> lu(B);
  lu.setThreshold(negligible_);
  Eigen::VectorXd b = Eigen::Map<Eigen::VectorXd>(x, k_);
  const bool singular = lu.rank() < k_;
  if (singular) {
    Eigen::FullPivLU<Eigen::MatrixXd> left(B.transpose());
    left.setThreshold(negligible_);
    b = without(scaled(left.kernel(), r), b);
  }
  Eigen::VectorXd solution = scaled(lu.solve(scaled(b, r)), c);
  if (singular) solution = without(scaled(lu.kernel(), c), solution);
  Eigen::Map<Eigen::VectorXd>(x, k_) = solution;
}

}  // namespace lcp::linalg
