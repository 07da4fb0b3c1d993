#include "solver/path_derivative.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "solver/unsolved.h"

namespace lcp::solver {

PathDerivative::PathDerivative(int n) : n_(n), lu_(n, linalg::Pivoting::kPartial), unit_(n) {}

// Rows are scaled to max(a_i, b_i) = 1, since pivots are chosen among them.
void PathDerivative::set(const double* M, const double* a, const double* b) {
  M_ = M;
  b_ = b;
  double* A = lu_.matrix(n_);
  for (int i = 0; i < n_; ++i) {
    unit_[i] = 1 / std::max(std::abs(a[i]), std::abs(b[i]));
    const std::size_t begin = static_cast<std::size_t>(i) * n_;
    for (int j = 0; j < n_; ++j) A[begin + j] = unit_[i] * b[i] * M[begin + j];
    A[begin + i] += unit_[i] * a[i];
  }
  valid_ = std::none_of(a, a + n_, [](double x) { return std::isnan(x); }) && lu_.factor(0) == n_;
}

void PathDerivative::tangent(const double* r, const double* s, double* x, double* y) {
  if (!valid_) {
    const double value = unsolved_derivative({r, s}, n_);
    std::fill_n(x, n_, value);
    std::fill_n(y, n_, value);
    return;
  }
  for (int i = 0; i < n_; ++i) x[i] = unit_[i] * (s[i] - b_[i] * r[i]);
  lu_.solve(x);
  for (int i = 0; i < n_; ++i) {
    const double* row = M_ + static_cast<std::size_t>(i) * n_;
    y[i] = r[i];
    for (int j = 0; j < n_; ++j) y[i] += row[j] * x[j];
  }
}

void PathDerivative::adjoint(const double* g_x, const double* g_y, double* t_r, double* t_s) {
  if (!valid_) {
    const double value = unsolved_derivative({g_x, g_y}, n_);
    std::fill_n(t_r, n_, value);
    std::fill_n(t_s, n_, value);
    return;
  }
  std::copy_n(g_x, n_, t_s);
  for (int i = 0; i < n_; ++i) {
    const double* row = M_ + static_cast<std::size_t>(i) * n_;
    for (int j = 0; j < n_; ++j) t_s[j] += row[j] * g_y[i];
  }
  lu_.solve_transposed(t_s);
  for (int i = 0; i < n_; ++i) {
    t_s[i] *= unit_[i];
    t_r[i] = g_y[i] - b_[i] * t_s[i];
  }
}

}  // namespace lcp::solver
