// Passes over the rows of one dense matrix.
#pragma once

#include "linalg/aligned.h"
#include "linalg/kernels.h"
#include "simd/vectors.h"

namespace lcp::linalg::LCP_ISA {

using namespace simd::LCP_ISA;
namespace {

// max |x_i|, and a sum that is NaN where an x_i is not finite. Both are computed in several independent parts, since
// each addition waits for the last one of its part.
struct Largest {
  static constexpr int kParts = 4;
  Vector magnitude[kParts] = {0, 0, 0, 0};
  Vector nonfinite[kParts] = {0, 0, 0, 0};

  LCP_INLINE void see(Vector x, int part) {
    magnitude[part] = stdx::max(magnitude[part], stdx::abs(x));
    nonfinite[part] = multiply_add(x, Vector(0), nonfinite[part]);
  }
  LCP_INLINE void see(const double* x, std::int64_t count) {
    std::int64_t j = 0;
    for (; j + kParts * kWidth <= count; j += kParts * kWidth) {
      unroll<kParts>([&](auto part) LCP_INLINE_LAMBDA { see(get(x + j + part * kWidth), part); });
    }
    for (; j + kWidth <= count; j += kWidth) see(get(x + j), 0);
    if (j < count) see(get(x + j, static_cast<int>(count - j)), 0);
  }
  LCP_INLINE double value() const {
    const Vector nonfinites = (nonfinite[0] + nonfinite[1]) + (nonfinite[2] + nonfinite[3]);
    if (stdx::any_of(nonfinites != Vector(0))) return std::numeric_limits<double>::infinity();
    return stdx::hmax(stdx::max(stdx::max(magnitude[0], magnitude[1]), stdx::max(magnitude[2], magnitude[3])));
  }
};

double largest(std::int64_t count, const double* x) {
  Largest all;
  all.see(x, count);
  return all.value();
}

// The largest n for which the span of a row is the whole row: looking for its zeros would cost more than they do.
constexpr int kWholeRows = 32;

LCP_INLINE inline bool any(Vector x) { return stdx::any_of(x != Vector(0)); }

// Finds the spans of all rows and the largest entry in one pass, so that later passes skip the zeros on both sides.
double scan(int n, const double* M, Span* spans) {
  Largest all;
  if (n <= kWholeRows) {
    const std::int64_t size = std::int64_t{n} * n;
    // The next matrix of a batch lies behind this one: its prefetch overlaps the solution of this problem.
    for (std::int64_t k = 0; k < size; k += kCacheLine / sizeof(double)) __builtin_prefetch(M + size + k);
    all.see(M, size);
    for (int i = 0; i < n; ++i) spans[i] = {0, n};
    return all.value();
  }
  for (int i = 0; i < n; ++i) {
    const double* const row = M + std::int64_t{i} * n;
    int first = 0;
    while (first + kWidth <= n && !any(get(row + first))) first += kWidth;
    if (first + kWidth > n && !any(get(row + first, n - first))) first = n;
    int last = n;
    while (last - kWidth >= first && !any(get(row + last - kWidth))) last -= kWidth;
    all.see(row + first, last - first);
    spans[i] = {first, last};
  }
  return all.value();
}

bool has_small_row(const Rows& rows, double magnitude) {
  for (int i = 0; i < rows.n; ++i) {
    const double* const row = rows.M + std::int64_t{i} * rows.n;
    const auto [first, last] = rows.spans == nullptr ? Span{0, rows.n} : rows.spans[i];
    const auto is_large = [magnitude](Vector x) LCP_INLINE_LAMBDA { return stdx::any_of(stdx::abs(x) >= magnitude); };
    int j = first;
    while (j + kWidth <= last && !is_large(get(row + j))) j += kWidth;
    if (j + kWidth > last && !(j < last && is_large(get(row + j, last - j)))) return true;
  }
  return false;
}

bool scale(std::int64_t count, const double* x, double first, double second, double* scaled) {
  Vector lost = 0;
  const auto step = [&](Vector from) LCP_INLINE_LAMBDA {
    Vector to = from * first * second;
    stdx::where(from == Vector(0), to) = 0;
    stdx::where(from != Vector(0) && stdx::abs(to) < Vector(std::numeric_limits<double>::min()), lost) = 1;
    return to;
  };
  std::int64_t j = 0;
  for (; j + kWidth <= count; j += kWidth) put(step(get(x + j)), scaled + j);
  if (j < count) {
    const Vector rest = step(get(x + j, static_cast<int>(count - j)));
    for (int l = 0; l < count - j; ++l) scaled[j + l] = rest[l];
  }
  return !any(lost);
}

// Whether the kWidth x kWidth block at (i, j) is the transpose of the block at (j, i), up to rounding.
LCP_INLINE inline bool is_mirrored(int n, const double* M, const double* diagonal, double rounding, int i, int j) {
  Native<double> x[kWidth];
  for (int l = 0; l < kWidth; ++l) x[l] = read<double>(M + std::int64_t{j + l} * n + i);
  transpose<double>(x);
  const Vector columns = get(diagonal + j) * (rounding * rounding);
  Mask<Vector> differ(false);
  for (int l = 0; l < kWidth; ++l) {
    const Vector difference = std::bit_cast<Vector>(x[l]) - get(M + std::int64_t{i + l} * n + j);
    differ = differ || difference * difference > columns * diagonal[i + l];
  }
  return !stdx::any_of(differ);
}

bool is_symmetric(const Rows& rows, const double* diagonal, double rounding) {
  const auto& [n, M, spans] = rows;
  if (n < kWidth) {
    for (int i = 0; i < n; ++i) {
      for (int j = 0; j < i; ++j) {
        const double difference = M[i * n + j] - M[j * n + i];
        if (difference * difference > rounding * rounding * diagonal[i] * diagonal[j]) return false;
      }
    }
    return true;
  }
  int reaching = 0;  // the first row that reaches the columns from i on
  for (int block = 0; block < n; block += kWidth) {
    const int i = block + kWidth <= n ? block : n - kWidth;
    while (reaching < i && spans[reaching].last <= i) ++reaching;
    int from = reaching;
    for (int l = 0; l < kWidth; ++l) from = spans[i + l].first < from ? spans[i + l].first : from;
    for (int j = from / kWidth * kWidth; j < i; j += kWidth) {
      if (!is_mirrored(n, M, diagonal, rounding, i, j)) return false;
    }
    if (!is_mirrored(n, M, diagonal, rounding, i, i)) return false;
  }
  return true;
}

// The scalar products of kWidth rows with z, and the scalar products of their magnitudes.
struct Products {
  Vector sum, magnitude;
};
template <bool with_magnitudes>
LCP_INLINE inline Products multiply(const double* const* row, Span span, const double* z) {
  Vector sum[kWidth], magnitude[kWidth];
  for (int l = 0; l < kWidth; ++l) sum[l] = magnitude[l] = 0;
  const auto step = [&](Vector z_j, const auto& entries) LCP_INLINE_LAMBDA {
    const Vector z_magnitude = stdx::abs(z_j);
    unroll<kWidth>([&](auto l) LCP_INLINE_LAMBDA {
      const Vector entry = entries(row[l]);
      sum[l] = multiply_add(entry, z_j, sum[l]);
      if constexpr (with_magnitudes) magnitude[l] = multiply_add(stdx::abs(entry), z_magnitude, magnitude[l]);
    });
  };
  int j = span.first;
  for (; j + kWidth <= span.last; j += kWidth) {
    step(get(z + j), [j](const double* p) LCP_INLINE_LAMBDA { return get(p + j); });
  }
  if (j < span.last) {
    const int rest = span.last - j;
    step(get(z + j, rest), [j, rest](const double* p) LCP_INLINE_LAMBDA { return get(p + j, rest); });
  }
  Products products = {sums_of(sum), Vector(0)};
  if constexpr (with_magnitudes) products.magnitude = sums_of(magnitude);
  return products;
}

// Calls use(r, count, products) for the rows index(r), r = 0..count-1, kWidth rows at a time.
template <bool with_magnitudes, class Index, class Use>
LCP_INLINE inline void multiply_rows(const Rows& rows, int count, const double* z, const Index& index, const Use& use) {
  for (int r = 0; r < count; r += kWidth) {
    const double* row[kWidth];
    Span span = {rows.n, 0};
    for (int l = 0; l < kWidth; ++l) {
      const int i = index(r + l < count ? r + l : count - 1);
      row[l] = rows.M + std::int64_t{i} * rows.n;
      const Span of_row = rows.spans == nullptr ? Span{0, rows.n} : rows.spans[i];
      span.first = of_row.first < span.first ? of_row.first : span.first;
      span.last = of_row.last > span.last ? of_row.last : span.last;
    }
    const Products products = multiply<with_magnitudes>(row, span, z);
    use(r, r + kWidth <= count ? kWidth : count - r, products);
  }
}

void sums(const Rows& rows, int from, int count, const double* q, const double* z, double* sum, double* magnitude) {
  multiply_rows<true>(
      rows, count, z, [from](int r) LCP_INLINE_LAMBDA { return from + r; },
      [&](int r, int some, const Products& products) LCP_INLINE_LAMBDA {
        const Vector q_i = get(q + from + r, some);
        const Vector total = q_i + products.sum;
        const Vector terms = stdx::abs(q_i) + products.magnitude;
        for (int l = 0; l < some; ++l) {
          sum[r + l] = total[l];
          magnitude[r + l] = terms[l];
        }
      });
}

void listed_sums(const Rows& rows, int count, const int* index, const double* q, const double* z, double* w) {
  multiply_rows<false>(
      rows, count, z, [index](int r) LCP_INLINE_LAMBDA { return index[r]; },
      [&](int r, int some, const Products& products) LCP_INLINE_LAMBDA {
        for (int l = 0; l < some; ++l) w[index[r + l]] = q[index[r + l]] + products.sum[l];
      });
}

}  // namespace
}  // namespace lcp::linalg::LCP_ISA
