#include "linalg/lu.h"

#include <algorithm>
#include <cmath>

namespace lcp::linalg {

Lu::Lu(int n) : lu_(static_cast<std::size_t>(n) * n), swap_(n) {}

double* Lu::matrix(int k) {
  k_ = k;
  return lu_.data();
}

bool Lu::factor() {
  for (int c = 0; c < k_; ++c) {
    int best = c;
    for (int i = c + 1; i < k_; ++i) {
      if (std::abs(row(i)[c]) > std::abs(row(best)[c])) best = i;
    }
    swap_[c] = best;
    double* pivot_row = row(c);
    if (best != c) std::swap_ranges(pivot_row, pivot_row + k_, row(best));
    const double pivot = pivot_row[c];
    if (!(pivot != 0) || !std::isfinite(pivot)) return false;
    for (int i = c + 1; i < k_; ++i) {
      double* t = row(i);
      if (t[c] == 0) continue;
      const double factor = t[c] /= pivot;
      for (int j = c + 1; j < k_; ++j) t[j] -= factor * pivot_row[j];
    }
  }
  return true;
}

void Lu::solve(double* x) const {
  for (int i = 0; i < k_; ++i) std::swap(x[i], x[swap_[i]]);
  for (int i = 0; i < k_; ++i) {
    const double* t = row(i);
    for (int j = 0; j < i; ++j) x[i] -= t[j] * x[j];
  }
  for (int i = k_ - 1; i >= 0; --i) {
    const double* t = row(i);
    for (int j = i + 1; j < k_; ++j) x[i] -= t[j] * x[j];
    x[i] /= t[i];
  }
}

void Lu::solve_transposed(double* x) const {
  for (int i = 0; i < k_; ++i) {
    const double* t = row(i);
    x[i] /= t[i];
    for (int j = i + 1; j < k_; ++j) x[j] -= t[j] * x[i];
  }
  for (int i = k_ - 1; i >= 0; --i) {
    const double* t = row(i);
    for (int j = 0; j < i; ++j) x[j] -= t[j] * x[i];
  }
  for (int i = k_ - 1; i >= 0; --i) std::swap(x[i], x[swap_[i]]);
}

}  // namespace lcp::linalg
