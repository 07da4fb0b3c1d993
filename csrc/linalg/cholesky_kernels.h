// U D^-1 U', U lower triangular and D its diagonal, of a symmetric positive definite matrix, in panels of kWidth rows.
#pragma once

#include "interrupt/checkpoint.h"
#include "linalg/kernels.h"
#include "simd/vectors.h"

namespace lcp::linalg::LCP_ISA {

using namespace simd::LCP_ISA;
namespace {

LCP_INLINE inline double* column(const Panel& panel, int j) { return panel.data + (j - panel.first) * kWidth; }

// `count` rows of M_aa from `base` on; in the other lanes zeros.
LCP_INLINE inline void fill(const Rows& rows, const int* index, int base, int count, const Panel& panel) {
  const double* row[kWidth];
  for (int l = 0; l < kWidth; ++l) row[l] = rows.M + std::int64_t{index[base + (l < count ? l : 0)]} * rows.n;
  double* target = panel.data;
  if (count == kWidth) {
    for (int j = panel.first; j < base + count; ++j, target += kWidth) {
      const int c = index[j];
      for (int l = 0; l < kWidth; ++l) target[l] = row[l][c];
    }
  } else {
    for (int j = panel.first; j < base + count; ++j, target += kWidth) {
      const int c = index[j];
      put(Vector([&](auto l) LCP_INLINE_LAMBDA { return l < count ? row[l][c] : 0.0; }), target);
    }
  }
}

// Columns base .. base + kWidth of `height` panels, less the contributions of the columns from `from` on: U_J(I) -=
// sum_j U_j(I) L_j(J). lower: L_j(J), kWidth numbers for each j.
template <int height>
LCP_INLINE inline void subtract(const Panel* panels, int from, int base, const double* lower, Vector* sum) {
  const double* source[height];
  unroll<height>([&](auto r) LCP_INLINE_LAMBDA {
    source[r] = column(panels[r], from);
    unroll<kWidth>([&](auto c) LCP_INLINE_LAMBDA { sum[r * kWidth + c] = get(column(panels[r], base + c)); });
  });
  const double* l = lower + std::int64_t{from} * kWidth;
  for (std::int64_t j = 0; j < (base - from) * kWidth; j += kWidth) {
    Vector x[height];
    unroll<height>([&](auto r) LCP_INLINE_LAMBDA { x[r] = get(source[r] + j); });
    unroll<kWidth>([&](auto c) LCP_INLINE_LAMBDA {
      const Vector factor(l[j + c]);
      unroll<height>(
          [&](auto r) LCP_INLINE_LAMBDA { sum[r * kWidth + c] = subtract_product(x[r], factor, sum[r * kWidth + c]); });
    });
  }
}

template <int height>
[[gnu::noinline]] void eliminate(const Panel* panels, int from, int base, const double* lower) {
  Vector sum[height * kWidth];
  subtract<height>(panels, from, base, lower, sum);
  const double* const l = lower + std::int64_t{base} * kWidth;
  unroll<kWidth>([&](auto c) LCP_INLINE_LAMBDA {
    unroll<kWidth>([&](auto d) LCP_INLINE_LAMBDA {
      if constexpr (d > c) {
        const Vector factor(l[c * kWidth + d]);
        unroll<height>([&](auto r) LCP_INLINE_LAMBDA {
          sum[r * kWidth + d] = subtract_product(sum[r * kWidth + c], factor, sum[r * kWidth + d]);
        });
      }
    });
  });
  unroll<height>([&](auto r) LCP_INLINE_LAMBDA {
    unroll<kWidth>([&](auto c) LCP_INLINE_LAMBDA { put(sum[r * kWidth + c], column(panels[r], base + c)); });
  });
}

// A pivot below this times the diagonal entry that it was computed from is round-off, or leaves few correct digits.
constexpr double kLeastPivot = 1e-10;

// The panel on the diagonal, and its L; false where a pivot is too small. On and above the diagonal it leaves 0.
[[gnu::noinline]] bool eliminate_diagonal(const Panel& panel, int base, int count, double* lower, double* inverse) {
  Vector least = 0;
  unroll<kWidth>([&](auto c) LCP_INLINE_LAMBDA {
    if (c < count) least[c] = kLeastPivot * column(panel, base + c)[c];
  });
  Vector sum[kWidth];
  subtract<1>(&panel, panel.first, base, lower, sum);
  double* const l = lower + std::int64_t{base} * kWidth;
  Vector pivots = 1;
  const Vector lane([](auto i) LCP_INLINE_LAMBDA { return static_cast<double>(i); });
  unroll<kWidth>([&](auto c) LCP_INLINE_LAMBDA {
    if (c >= count) {  // beyond the last row
      inverse[base + c] = 0;
      return put(Vector(0), column(panel, base + c));
    }
    const Vector reciprocal = 1.0 / Vector(sum[c][c]);
    pivots[c] = sum[c][c];
    put(reciprocal * sum[c], l + c * kWidth);
    inverse[base + c] = reciprocal[0];
    unroll<kWidth>([&](auto d) LCP_INLINE_LAMBDA {
      if constexpr (d > c) sum[d] = subtract_product(sum[c], Vector(sum[c][d]) * reciprocal, sum[d]);
    });
    stdx::where(lane <= Vector(c), sum[c]) = 0;
    put(sum[c], column(panel, base + c));
  });
  return stdx::all_of(pivots > least);
}

bool factor(const Rows& rows, int k, const int* index, const Panel* panels, double* lower, double* inverse) {
  const int count = (k + kWidth - 1) / kWidth;
  const auto height = [k](int p) LCP_INLINE_LAMBDA { return k - p * kWidth < kWidth ? k - p * kWidth : kWidth; };
  for (int p = 0; p < count; ++p) fill(rows, index, p * kWidth, height(p), panels[p]);
  interrupt::Pace pace;
  for (int p = 0; p < count; ++p) {
    const int base = p * kWidth;
    const int first = panels[p].first;
    pace.spend(std::int64_t{k - base} * (base - first + kWidth) * kWidth);
    for (int j = first; j < base; ++j) put(get(column(panels[p], j)) * Vector(inverse[j]), lower + j * kWidth);
    if (!eliminate_diagonal(panels[p], base, height(p), lower, inverse)) return false;
    const auto from = [&](int r) LCP_INLINE_LAMBDA { return panels[r].first > first ? panels[r].first : first; };
    for (int r = p + 1; r < count;) {
      const int begin = from(r);
      if (begin > base) {  // the row begins behind this column
        ++r;
      } else if (r + 2 < count && from(r + 1) == begin && from(r + 2) == begin) {
        eliminate<3>(panels + r, begin, base, lower);
        r += 3;
      } else if (r + 1 < count && from(r + 1) == begin) {
        eliminate<2>(panels + r, begin, base, lower);
        r += 2;
      } else {
        eliminate<1>(panels + r, begin, base, lower);
        ++r;
      }
    }
  }
  return true;
}

// U y = b, then L'x = y with L = U D^-1. sum: scratch.
void solve(int k, const Panel* panels, const double* inverse, double* sum, double* x) {
  const int count = (k + kWidth - 1) / kWidth;
  for (int p = 0; p < count; ++p) {
    const int base = p * kWidth;
    Vector part[4] = {get(x + base), Vector(0), Vector(0), Vector(0)};
    for (int j = panels[p].first; j < base; j += kWidth) {
      const double* const u = column(panels[p], j);
      unroll<kWidth>([&](auto c) LCP_INLINE_LAMBDA {
        part[c % 4] = subtract_product(get(u + c * kWidth), Vector(x[j + c]), part[c % 4]);
      });
    }
    Vector y = (part[0] + part[1]) + (part[2] + part[3]);
    const Vector reciprocal = get(inverse + base);
    const double* const u = column(panels[p], base);
    unroll<kWidth>([&](auto c) LCP_INLINE_LAMBDA {
      if (base + c >= k) return;
      y = subtract_product(get(u + c * kWidth), Vector((y * reciprocal)[c]), y);
    });
    put(y * reciprocal, x + base);
    put(Vector(0), sum + base);
  }
  for (int p = count - 1; p >= 0; --p) {
    const int base = p * kWidth;
    const Vector reciprocal = get(inverse + base);
    Vector y = get(x + base) - reciprocal * get(sum + base);
    Native<double> row[kWidth];
    unroll<kWidth>([&](auto c) LCP_INLINE_LAMBDA { row[c] = read<double>(column(panels[p], base + c)); });
    transpose<double>(row);
    unroll<kWidth>([&](auto c) LCP_INLINE_LAMBDA {
      constexpr int d = kWidth - 1 - c;
      if (base + d >= k) return;
      y = subtract_product(std::bit_cast<Vector>(row[d]) * reciprocal, Vector(y[d]), y);
    });
    put(y, x + base);
    for (int j = panels[p].first; j < base; j += kWidth) {
      Vector product[kWidth];
      unroll<kWidth>([&](auto c) LCP_INLINE_LAMBDA { product[c] = get(column(panels[p], j + c)) * y; });
      put(get(sum + j) + sums_of(product), sum + j);
    }
  }
}

}  // namespace
}  // namespace lcp::linalg::LCP_ISA
