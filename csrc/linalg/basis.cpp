#include "linalg/basis.h"

#include <Eigen/LU>
#include <Eigen/QR>
#include <algorithm>
#include <cmath>

#include "linalg/equilibrate.h"

namespace lcp::linalg {

Basis::Basis(int n, double negligible)
    : n_(n), negligible_(negligible), index_(n), row_swap_(n), column_swap_(n), lu_(static_cast<std::size_t>(n) * n) {}

void Basis::factor(const double* M, const unsigned char* marked) {
  M_ = M;
  k_ = 0;
  pivots_ = 0;
  doubtful_ = false;
  for (int i = 0; i < n_; ++i) {
    if (marked[i]) index_[k_++] = i;
  }
  for (int i = 0; i < k_; ++i) {
    const double* source = M + static_cast<std::size_t>(index_[i]) * n_;
    double* target = row(i);
    for (int j = 0; j < k_; ++j) target[j] = source[index_[j]];
  }
  double first_pivot = 0;
  for (int c = 0; c < k_; ++c) {
    double largest = -1;
    for (int i = c; i < k_; ++i) {
      const double* t = row(i);
      for (int j = c; j < k_; ++j) {
        if (std::abs(t[j]) > largest) {
          largest = std::abs(t[j]);
          row_swap_[c] = i;
          column_swap_[c] = j;
        }
      }
    }
    if (c == 0) first_pivot = largest;
    doubtful_ = largest <= negligible_ * first_pivot;
    if (doubtful_) return;
    pivots_ = c + 1;
    double* pivot_row = row(c);
    if (row_swap_[c] != c) std::swap_ranges(pivot_row, pivot_row + k_, row(row_swap_[c]));
    if (column_swap_[c] != c) {
      for (int i = 0; i < k_; ++i) std::swap(row(i)[c], row(i)[column_swap_[c]]);
    }
    for (int i = c + 1; i < k_; ++i) {
      double* t = row(i);
      const double factor = t[c] /= pivot_row[c];
      if (factor == 0) continue;
      for (int j = c + 1; j < k_; ++j) t[j] -= factor * pivot_row[j];
    }
  }
}

void Basis::solve(double* x) {
  if (doubtful_) return solve_carefully(x, false);
  for (int i = 0; i < k_; ++i) std::swap(x[i], x[row_swap_[i]]);
  for (int i = 0; i < k_; ++i) {
    const double* t = row(i);
    for (int j = 0; j < i; ++j) x[i] -= t[j] * x[j];
  }
  for (int i = k_ - 1; i >= 0; --i) {
    const double* t = row(i);
    for (int j = i + 1; j < k_; ++j) x[i] -= t[j] * x[j];
    x[i] /= t[i];
  }
  for (int i = k_ - 1; i >= 0; --i) std::swap(x[i], x[column_swap_[i]]);
}

void Basis::solve_transposed(double* x) {
  if (doubtful_) return solve_carefully(x, true);
  for (int i = 0; i < k_; ++i) std::swap(x[i], x[column_swap_[i]]);
  for (int i = 0; i < k_; ++i) {
    const double* t = row(i);
    x[i] /= t[i];
    for (int j = i + 1; j < k_; ++j) x[j] -= t[j] * x[i];
  }
  for (int i = k_ - 1; i >= 0; --i) {
    const double* t = row(i);
    for (int j = 0; j < i; ++j) x[j] -= t[j] * x[i];
  }
  for (int i = k_ - 1; i >= 0; --i) std::swap(x[i], x[row_swap_[i]]);
}

void Basis::solve_near(double* b, double* x) const {
  for (int i = 0; i < pivots_; ++i) {
    std::swap(b[i], b[row_swap_[i]]);
    std::swap(x[i], x[column_swap_[i]]);
  }
  for (int i = 0; i < pivots_; ++i) {
    const double* t = row(i);
    for (int j = 0; j < i; ++j) b[i] -= t[j] * b[j];
  }
  for (int i = pivots_ - 1; i >= 0; --i) {
    const double* t = row(i);
    x[i] = b[i];
    for (int j = i + 1; j < k_; ++j) x[i] -= t[j] * x[j];
    x[i] /= t[i];
  }
  for (int i = pivots_ - 1; i >= 0; --i) std::swap(x[i], x[column_swap_[i]]);
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
  if (!doubtful_) return k_;
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
