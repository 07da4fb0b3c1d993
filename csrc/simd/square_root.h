// The square root of vectors of numbers.
#pragma once

#include "simd/lanes.h"

namespace lcp::simd::LCP_ISA {

// (The mask that selects all lanes keeps GCC 12 from warning of the undefined vectors in its own headers.)
LCP_INLINE inline Lanes<double> square_root(const Lanes<double>& x) {
#ifdef __AVX512F__
  return Lanes<double>(_mm512_maskz_sqrt_pd(0xff, static_cast<__m512d>(x)));
#else
  return stdx::sqrt(x);
#endif
}

}  // namespace lcp::simd::LCP_ISA
