// Lemke's pivots on a tableau that is stored by columns: each pivot updates one column after another by a multiple of
// the driving one, and the ratio test reads the driving column as a vector.
#pragma once

#include <cstddef>
#include <cstdint>

#include "solver/end.h"
#include "solver/simd/kernels.h"
#include "solver/simd/vectors.h"

namespace lcp::solver::LCP_ISA {

LCP_INLINE inline Vector at(const double* p) { return Vector(p, stdx::vector_aligned); }

// M, n x n row-major, by columns: column j goes to target + j * stride.
inline void by_columns(int n, const double* M, double* target, int stride) {
  const int whole = n / kWidth * kWidth;
  for (int i = 0; i < whole; i += kWidth) {
    for (int j = 0; j < whole; j += kWidth) {
      Native<double> x[kWidth];
      for (int k = 0; k < kWidth; ++k) x[k] = read<double>(M + static_cast<std::ptrdiff_t>(i + k) * n + j);
      transpose<double>(x);
      for (int k = 0; k < kWidth; ++k) write<double>(x[k], target + static_cast<std::ptrdiff_t>(j + k) * stride + i);
    }
  }
  for (int i = 0; i < n; ++i) {
    const double* row = M + static_cast<std::ptrdiff_t>(i) * n;
    for (int j = i < whole ? whole : 0; j < n; ++j) target[static_cast<std::ptrdiff_t>(j) * stride + i] = row[j];
  }
}

// The columns of `vectors` vectors each; 0: as many as the stride says.
template <int vectors>
class LemkePivots {
 public:
  explicit LemkePivots(LemkeTableau& tableau) : t_(tableau) {}

  End run(double pivot_tolerance, double tie_tolerance, std::int64_t max_pivots) {
    const int artificial = 2 * t_.n;
    const int artificial_row = t_.first_row;  // the artificial variable stays basic in this row until it leaves
    int r = artificial_row;
    int c = t_.n;
    for (t_.pivots = 0; t_.pivots < max_pivots;) {
      pivot(r, c);
      ++t_.pivots;
      const int left = t_.column_variable[c];
      if (left == artificial) return End::kClaim;
      c = t_.column_of[left < t_.n ? left + t_.n : left - t_.n];  // the complement of what left drives next
      r = ratio_test(c, artificial_row, pivot_tolerance, tie_tolerance);
      if (r < 0) return End::kStuck;
    }
    return End::kLimit;
  }

 private:
  double* column(int j) const { return t_.columns + static_cast<std::ptrdiff_t>(j) * t_.stride; }
  int count() const { return vectors > 0 ? vectors : t_.stride / kWidth; }

  void pivot(int r, int c) {
    double* const driving = column(c);
    const double inverse = 1.0 / driving[r];
    [[maybe_unused]] Vector factor[vectors > 0 ? vectors : 1];
    if constexpr (vectors > 0) {
      for (int v = 0; v < vectors; ++v) factor[v] = at(driving + v * kWidth);
    }
    const std::ptrdiff_t stride = t_.stride;
    double* const end = column(t_.n + 3);
    for (double* x = column(0); x < end; x += stride) {
      if (x == driving) continue;
      const double multiple = -inverse * x[r];
      const Vector multiples = multiple;
      for (int v = 0; v < count(); ++v) {
        const Vector f = vectors > 0 ? factor[vectors > 0 ? v : 0] : at(driving + v * kWidth);
        multiply_add(f, multiples, at(x + v * kWidth)).copy_to(x + v * kWidth, stdx::vector_aligned);
      }
      x[r] = multiple;
    }
    for (int v = 0; v < count(); ++v) {
      (at(driving + v * kWidth) * inverse).copy_to(driving + v * kWidth, stdx::vector_aligned);
    }
    driving[r] = inverse;
    const int entered = t_.column_variable[c];
    t_.column_variable[c] = t_.row_variable[r];
    t_.row_variable[r] = entered;
    t_.column_of[t_.column_variable[c]] = c;
  }

  // The row that blocks the driving column c first, or -1. The artificial variable wins a tie, since a solution is
  // found when it leaves; the perturbation decides among the others. A right-hand side below 0 is round-off.
  int ratio_test(int c, int artificial_row, double pivot_tolerance, double tie_tolerance) {
    constexpr double infinity = std::numeric_limits<double>::infinity();
    const double* const driving = column(c);
    const double* const q = column(t_.n + 1);
    const double* const perturbation = column(t_.n + 2);
    Vector largest = 0;
    for (int v = 0; v < count(); ++v) largest = stdx::max(largest, stdx::abs(at(driving + v * kWidth)));
    const Vector threshold = -pivot_tolerance * stdx::hmax(largest);
    Vector smallest = infinity;
    for (int v = 0; v < count(); ++v) {
      const Vector x = at(driving + v * kWidth);
      Vector ratio = infinity;
      stdx::where(x < threshold, ratio) = stdx::max(Vector(0), at(q + v * kWidth)) / -x;
      ratio.copy_to(t_.ratio + v * kWidth, stdx::vector_aligned);
      smallest = stdx::min(smallest, ratio);
    }
    const double least = stdx::hmin(smallest);
    if (!(least < infinity)) return -1;

    const double limit = least + tie_tolerance * (least > 1e-3 * t_.largest_q ? least : 1e-3 * t_.largest_q);
    if (t_.ratio[artificial_row] <= limit) return artificial_row;
    Vector first = infinity;
    for (int v = 0; v < count(); ++v) {
      Vector rate = infinity;
      stdx::where(at(t_.ratio + v * kWidth) <= limit, rate) = at(perturbation + v * kWidth) / -at(driving + v * kWidth);
      rate.copy_to(t_.ratio + v * kWidth, stdx::vector_aligned);
      first = stdx::min(first, rate);
    }
    const Vector best = stdx::hmin(first);
    for (int v = 0; v < count(); ++v) {
      const auto equal = at(t_.ratio + v * kWidth) == best;
      if (stdx::any_of(equal)) return v * kWidth + stdx::find_first_set(equal);
    }
    return -1;
  }

  LemkeTableau& t_;
};

[[gnu::flatten]] inline End lemke(LemkeTableau& tableau, double pivot_tolerance, double tie_tolerance,
                                  std::int64_t max_pivots) {
  switch (tableau.stride / kWidth) {
    case 1:
      return LemkePivots<1>(tableau).run(pivot_tolerance, tie_tolerance, max_pivots);
    case 2:
      return LemkePivots<2>(tableau).run(pivot_tolerance, tie_tolerance, max_pivots);
    case 3:
      return LemkePivots<3>(tableau).run(pivot_tolerance, tie_tolerance, max_pivots);
    case 4:
      return LemkePivots<4>(tableau).run(pivot_tolerance, tie_tolerance, max_pivots);
    default:
      return LemkePivots<0>(tableau).run(pivot_tolerance, tie_tolerance, max_pivots);
  }
}

}  // namespace lcp::solver::LCP_ISA
