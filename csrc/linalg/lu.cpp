#include "linalg/lu.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "linalg/kernels.h"
#include "simd/inline.h"

namespace lcp::linalg {
namespace {

// The width from which on the vector kernel finds faster than a loop whether a row has a larger entry.
constexpr int kWide = 16;

// The k from which on a single factorization may take so long that it looks for an interrupt between its columns.
constexpr int kLong = 200;

}  // namespace

Lu::Lu(int n, Pivoting pivoting)
    : pivoting_(pivoting), lu_(static_cast<std::size_t>(n) * n), row_swap_(n), column_swap_(n) {
  std::iota(column_swap_.begin(), column_swap_.end(), 0);
}

double* Lu::matrix(int k) {
  k_ = k;
  return lu_.data();
}

// Finds pivot c among the remaining entries; returns its magnitude.
template <Pivoting pivoting>
LCP_INLINE inline double Lu::find_pivot(int c) {
  const int k = k_;  // no store below changes it, which the compiler does not know
  const int last_column = pivoting == Pivoting::kFull ? k : c + 1;
  row_swap_[c] = column_swap_[c] = c;
  double largest = std::abs(row(c)[c]);
  const auto search = [&](int i) LCP_INLINE_LAMBDA {
    const double* t = row(i);
    for (int j = c; j < last_column; ++j) {
      if (std::abs(t[j]) > largest) {
        largest = std::abs(t[j]);
        row_swap_[c] = i;
        column_swap_[c] = j;
      }
    }
  };
  if (last_column - c < kWide) {
    for (int i = c; i < k; ++i) search(i);
  } else {
    for (int i = c; i < k; ++i) {
      if (kernels().rows.largest(last_column - c, row(i) + c) > largest) search(i);
    }
  }
  return largest;
}

template <Pivoting pivoting>
LCP_INLINE inline int Lu::factor(double negligible) {
  double first_pivot = 0;
  for (int c = 0; c < k_; ++c) {
    if (k_ >= kLong) pace_.spend(std::int64_t{k_} * (k_ - c));
    const double largest = find_pivot<pivoting>(c);
    if (c == 0) first_pivot = largest;
    pivots_ = c;
    if (!(largest > negligible * first_pivot) || !std::isfinite(largest)) return pivots_;
    double* pivot_row = row(c);
    if (row_swap_[c] != c) std::swap_ranges(pivot_row, pivot_row + k_, row(row_swap_[c]));
    if (pivoting == Pivoting::kFull && column_swap_[c] != c) {
      for (int i = 0; i < k_; ++i) std::swap(row(i)[c], row(i)[column_swap_[c]]);
    }
    const double pivot = pivot_row[c];
    for (int i = c + 1; i < k_; ++i) {
      double* t = row(i);
      const double factor = t[c] /= pivot;
      if (factor == 0) continue;
      for (int j = c + 1; j < k_; ++j) t[j] -= factor * pivot_row[j];
    }
  }
  return pivots_ = k_;
}

int Lu::factor(double negligible) {
  if (k_ < kLong) pace_.spend(std::int64_t{k_} * k_ * k_ / 3);
  return pivoting_ == Pivoting::kFull ? factor<Pivoting::kFull>(negligible) : factor<Pivoting::kPartial>(negligible);
}

void Lu::solve(double* x) const {
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
  if (pivoting_ == Pivoting::kPartial) return;
  for (int i = k_ - 1; i >= 0; --i) std::swap(x[i], x[column_swap_[i]]);
}

void Lu::solve_transposed(double* x) const {
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

void Lu::solve_near(double* b, double* x) const {
  for (int i = 0; i < pivots_; ++i) {
    std::swap(b[i], b[row_swap_[i]]);
    std::swap(x[i], x[column_swap_[i]]);
  }
  for (int i = 0; i < pivots_; ++i) {
    const double* t = row(i);
    for (int j = 0; j < i; ++j) b[i] -= t[j] * b[j];
  }
  std::copy_n(b, pivots_, x);
  substitute(x);
  for (int i = pivots_ - 1; i >= 0; --i) std::swap(x[i], x[column_swap_[i]]);
}

void Lu::solve_near_transposed(double* b, double* x) const {
  for (int i = 0; i < pivots_; ++i) {
    std::swap(b[i], b[column_swap_[i]]);
    std::swap(x[i], x[row_swap_[i]]);
  }
  for (int i = 0; i < pivots_; ++i) {
    const double* t = row(i);
    x[i] = b[i] / t[i];
    for (int j = i + 1; j < pivots_; ++j) b[j] -= t[j] * x[i];
  }
  substitute_transposed(x);
  for (int i = pivots_ - 1; i >= 0; --i) std::swap(x[i], x[row_swap_[i]]);
}

void Lu::null_space(double* vectors) const {
  for (int c = pivots_; c < k_; ++c, vectors += k_) {
    std::fill_n(vectors, k_, 0.0);
    vectors[c] = 1;
    substitute(vectors);
    for (int i = pivots_ - 1; i >= 0; --i) std::swap(vectors[i], vectors[column_swap_[i]]);
  }
}

void Lu::null_space_of_transpose(double* vectors) const {
  for (int r = pivots_; r < k_; ++r, vectors += k_) {
    std::fill_n(vectors, k_, 0.0);
    vectors[r] = 1;
    substitute_transposed(vectors);
    for (int i = pivots_ - 1; i >= 0; --i) std::swap(vectors[i], vectors[row_swap_[i]]);
  }
}

bool Lu::rest_is_negligible(double negligible) const {
  for (int i = pivots_; i < k_; ++i) {
    const double* t = row(i);
    for (int j = pivots_; j < k_; ++j) {
      double sum = 0;
      for (int c = 0; c < pivots_; ++c) sum += std::abs(t[c] * row(c)[j]);
      if (!(std::abs(t[j]) <= negligible * sum)) return false;
    }
  }
  return true;
}

// Solves U x = x in the rows of the pivots, where the other entries of x are given.
void Lu::substitute(double* x) const {
  for (int i = pivots_ - 1; i >= 0; --i) {
    const double* t = row(i);
    for (int j = i + 1; j < k_; ++j) x[i] -= t[j] * x[j];
    x[i] /= t[i];
  }
}

// Solves L' x = x likewise.
void Lu::substitute_transposed(double* x) const {
  for (int i = k_ - 1; i > 0; --i) {
    const double* t = row(i);
    for (int j = 0; j < std::min(i, pivots_); ++j) x[j] -= t[j] * x[i];
  }
}

}  // namespace lcp::linalg
