// Outer products t x' for n too large for SmallKernels; a row of the product lies along vectors.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "batch/kernels.h"
#include "simd/lanes.h"

namespace lcp::batch::LCP_ISA {

using namespace simd::LCP_ISA;

// A row of n <= kLockstep numbers of type T as vectors of U, with 0 for NaN. The lanes behind the row are undefined.
template <class U, class T>
class PaddedRow {
 public:
  static constexpr int kWidth = kLanes<U>;
  static constexpr int kParts = (kLockstep + kWidth - 1) / kWidth;

  explicit PaddedRow(int n) : n_(n), parts_((n + kWidth - 1) / kWidth) {}

  int parts() const { return parts_; }
  const Lanes<U>& part(int p) const { return part_[p]; }
  // Whether memory of this many numbers can hold whole vectors.
  bool fits(std::int64_t numbers) const { return numbers >= std::int64_t{parts_} * kWidth; }
  // available: the count of numbers that may be read from x on.
  LCP_INLINE void load(const T* x, std::int64_t available) {
    if (!fits(available)) {
      std::copy_n(x, n_, copy_);
      x = copy_;
    }
    for (int p = 0; p < parts_; ++p) {
      Lanes<U>& part = part_[p];
      part = std::bit_cast<Lanes<U>>(read<U>(x + p * kWidth));
      stdx::where(part != part, part) = 0;
    }
  }

 private:
  int n_, parts_;
  Lanes<U> part_[kParts];
  T copy_[kParts * kWidth] = {};
};

template <class T>
[[gnu::flatten]] void outer_rows(int n, std::int64_t count, const T* t, const T* x, T* result) {
  using Row = PaddedRow<T, T>;
  Row row(n);
  for (std::int64_t b = 0; b < count; ++b) {
    row.load(x + b * n, (count - b) * n);
    for (int i = 0; i < n; ++i) {
      const std::int64_t k = b * n + i;
      T* const target = result + k * n;
      // The vectors write beyond the row, and the next row overwrites those numbers.
      const bool fits = row.fits((count * n - k) * n);
      T last[Row::kParts * Row::kWidth];
      for (int p = 0; p < row.parts(); ++p) {
        (t[k] * row.part(p)).copy_to((fits ? target : last) + p * Row::kWidth, stdx::element_aligned);
      }
      if (!fits) std::copy_n(last, n, target);
    }
  }
}

template <class T>
[[gnu::flatten]] void sum_outer_rows(int n, std::int64_t count, const T* t, const T* x, double* result) {
  using Row = PaddedRow<double, T>;
  Row row(n);
  Lanes<double> sum[kLockstep * Row::kParts];
  for (int k = 0; k < n * row.parts(); ++k) sum[k] = 0;
  for (std::int64_t b = 0; b < count; ++b) {
    row.load(x + b * n, (count - b) * n);
    for (int i = 0; i < n; ++i) {
      const Lanes<double> t_i = static_cast<double>(t[b * n + i]);
      for (int p = 0; p < row.parts(); ++p) sum[i * row.parts() + p] += t_i * row.part(p);
    }
  }
  for (int i = 0; i < n; ++i) {
    for (int j = 0; j < n; ++j) result[i * n + j] = sum[i * row.parts() + j / Row::kWidth][j % Row::kWidth];
  }
}

}  // namespace lcp::batch::LCP_ISA
