#include "linalg/basis.h"

#include <Eigen/LU>
#include <Eigen/QR>
#include <algorithm>
#include <cmath>

#include "linalg/equilibrate.h"

namespace lcp::linalg {

Basis::Basis(int n, double negligible) : n_(n), negligible_(negligible), index_(n), lu_(n, Pivoting::kFull) {}

void Basis::factor(const double* M, const unsigned char* marked) {
  M_ = M;
  k_ = 0;
  for (int i = 0; i < n_; ++i) {
    if (marked[i]) index_[k_++] = i;
  }
  double* target = lu_.matrix(k_);
  for (int i = 0; i < k_; ++i) {
    const double* source = M + static_cast<std::size_t>(index_[i]) * n_;
    for (int j = 0; j < k_; ++j) *target++ = source[index_[j]];
  }
  pivots_ = lu_.factor(negligible_);
}

void Basis::solve(double* x) {
  if (!regular()) return solve_carefully(x, false);
  lu_.solve(x);
}

void Basis::solve_transposed(double* x) {
  if (!regular()) return solve_carefully(x, true);
  lu_.solve_transposed(x);
}

namespace {

// x minus its part in the columns' span.
Eigen::VectorXd without(const Eigen::MatrixXd& columns, const Eigen::VectorXd& x) {
  const Eigen::HouseholderQR<Eigen::MatrixXd> qr(columns);
  const Eigen::MatrixXd q = qr.householderQ() * Eigen::MatrixXd::Identity(columns.rows(), columns.cols());
  return x - q * (q.transpose() * x);
}

}  // namespace

// 2^-r A 2^-c for A = M_aa or its transpose.
Eigen::MatrixXd Basis::equilibrated(bool transposed, int* r, int* c) const {
  Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor> B(k_, k_);
  for (int i = 0; i < k_; ++i) {
    for (int j = 0; j < k_; ++j) {
      B(i, j) = M_[static_cast<std::size_t>(index_[transposed ? j : i]) * n_ + index_[transposed ? i : j]];
    }
  }
  equilibrate(k_, B.data(), r, c);
  return B;
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
