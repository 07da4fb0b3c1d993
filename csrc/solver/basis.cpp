#include "solver/basis.h"

#include <Eigen/QR>

#include <algorithm>
#include <cmath>
#include <limits>

namespace lcp::solver {

Basis::Basis(int n) : n_(n), index_(n), swap_(n), lu_(static_cast<std::size_t>(n) * n) {}

void Basis::factor(const double* M, const unsigned char* marked) {
  M_ = M;
  k_ = 0;
  for (int i = 0; i < n_; ++i) {
    if (marked[i]) index_[k_++] = i;
  }
  double largest = 0;
  for (int i = 0; i < k_; ++i) {
    const double* source = M + static_cast<std::size_t>(index_[i]) * n_;
    double* target = lu_.data() + static_cast<std::size_t>(i) * k_;
    for (int j = 0; j < k_; ++j) {
      target[j] = source[index_[j]];
      largest = std::max(largest, std::abs(target[j]));
    }
  }
  const double negligible = std::numeric_limits<double>::epsilon() * k_ * largest;
  singular_ = false;
  for (int c = 0; c < k_; ++c) {
    double* pivot_row = lu_.data() + static_cast<std::size_t>(c) * k_;
    int r = c;
    for (int i = c + 1; i < k_; ++i) {
      if (std::abs(lu_[static_cast<std::size_t>(i) * k_ + c]) > std::abs(lu_[static_cast<std::size_t>(r) * k_ + c])) r = i;
    }
    swap_[c] = r;
    double* chosen = lu_.data() + static_cast<std::size_t>(r) * k_;
    if (std::abs(chosen[c]) <= negligible) {
      singular_ = true;
      return;
    }
    if (r != c) std::swap_ranges(chosen, chosen + k_, pivot_row);
    for (int i = c + 1; i < k_; ++i) {
      double* t = lu_.data() + static_cast<std::size_t>(i) * k_;
      const double factor = t[c] /= pivot_row[c];
      if (factor == 0) continue;
      for (int j = c + 1; j < k_; ++j) t[j] -= factor * pivot_row[j];
    }
  }
}

void Basis::solve(double* x) {
  if (singular_) return solve_least_squares(x, false);
  for (int i = 0; i < k_; ++i) std::swap(x[i], x[swap_[i]]);
  for (int i = 0; i < k_; ++i) {
    const double* t = lu_.data() + static_cast<std::size_t>(i) * k_;
    for (int j = 0; j < i; ++j) x[i] -= t[j] * x[j];
  }
  for (int i = k_ - 1; i >= 0; --i) {
    const double* t = lu_.data() + static_cast<std::size_t>(i) * k_;
    for (int j = i + 1; j < k_; ++j) x[i] -= t[j] * x[j];
    x[i] /= t[i];
  }
}

void Basis::solve_transposed(double* x) {
  if (singular_) return solve_least_squares(x, true);
  for (int i = 0; i < k_; ++i) {
    const double* t = lu_.data() + static_cast<std::size_t>(i) * k_;
    x[i] /= t[i];
    for (int j = i + 1; j < k_; ++j) x[j] -= t[j] * x[i];
  }
  for (int i = k_ - 1; i >= 0; --i) {
    const double* t = lu_.data() + static_cast<std::size_t>(i) * k_;
    for (int j = 0; j < i; ++j) x[j] -= t[j] * x[i];
  }
  for (int i = k_ - 1; i >= 0; --i) std::swap(x[i], x[swap_[i]]);
}

void Basis::solve_least_squares(double* x, bool transposed) {
  Eigen::MatrixXd A(k_, k_);
  for (int i = 0; i < k_; ++i) {
    for (int j = 0; j < k_; ++j) A(i, j) = M_[static_cast<std::size_t>(index_[i]) * n_ + index_[j]];
  }
  if (transposed) A.transposeInPlace();
  Eigen::Map<Eigen::VectorXd> right(x, k_);
  const Eigen::VectorXd solution = A.completeOrthogonalDecomposition().solve(right);
  right = solution;
}

}  // namespace lcp::solver
