// Vectors whose lanes hold neighbouring numbers of one problem.
#pragma once

#include "simd/lanes.h"

namespace lcp::simd::LCP_ISA {

using Vector = Lanes<double>;
inline constexpr int kWidth = kLanes<double>;

// A vector in memory at any address.
LCP_INLINE inline Vector get(const double* p) { return Vector(p, stdx::element_aligned); }
LCP_INLINE inline void put(Vector x, double* p) { x.copy_to(p, stdx::element_aligned); }

// The first count <= kWidth of the numbers, then zeros; no memory behind them is read.
LCP_INLINE inline Vector get(const double* p, int count) {
#if defined __AVX512F__
  return Vector(_mm512_maskz_loadu_pd(static_cast<__mmask8>((1U << count) - 1), p));
#elif defined __AVX2__
  const __m256i lane = _mm256_setr_epi64x(0, 1, 2, 3);
  return Vector(_mm256_maskload_pd(p, _mm256_cmpgt_epi64(_mm256_set1_epi64x(count), lane)));
#else
  return Vector([&](auto l) LCP_INLINE_LAMBDA { return static_cast<int>(l) < count ? p[l] : 0.0; });
#endif
}

// Lane l of the result is the sum over x[l]. x has kWidth vectors and is overwritten.
LCP_INLINE inline Vector sums_of(Vector* x) {
  unroll<std::countr_zero(static_cast<unsigned>(kWidth))>([&](auto k) LCP_INLINE_LAMBDA {
    constexpr int step = 1 << k;
    for (int i = 0; i < kWidth; i += 2 * step) {
      const auto [low, high] =
          exchange<double, step>(std::bit_cast<Native<double>>(x[i]), std::bit_cast<Native<double>>(x[i + step]));
      x[i] = std::bit_cast<Vector>(low + high);
    }
  });
  return x[0];
}

}  // namespace lcp::simd::LCP_ISA
