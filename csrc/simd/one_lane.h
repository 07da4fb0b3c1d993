// One problem in each thread of a GPU, with the names that simd/lanes.h has for vectors: a vector of one lane is a
// number, and its mask is a bool.
#pragma once

#include <cmath>

#include "simd/inline.h"

namespace lcp::simd::LCP_ISA {

template <class T>
using Lanes = T;

template <class T>
inline constexpr int kLanes = 1;

template <class V>
using Element = V;

template <class V>
using Mask = bool;

namespace stdx {

template <class V>
LCP_INLINE inline V abs(V x) {
  return ::fabs(x);
}
template <class V>
LCP_INLINE inline V max(V x, V y) {
  return x < y ? y : x;
}
template <class V>
LCP_INLINE inline V min(V x, V y) {
  return y < x ? y : x;
}
template <class V>
LCP_INLINE inline V copysign(V x, V sign) {
  return ::copysign(x, sign);
}
LCP_INLINE inline bool any_of(bool x) { return x; }
LCP_INLINE inline bool all_of(bool x) { return x; }

template <class V>
struct Where {
  bool mask;
  V& target;
  LCP_INLINE void operator=(V x) const {
    if (mask) target = x;
  }
};
template <class V>
LCP_INLINE inline Where<V> where(bool mask, V& target) {
  return {mask, target};
}

}  // namespace stdx

LCP_INLINE inline double multiply_add(double a, double b, double c) { return __fma_rn(a, b, c); }
LCP_INLINE inline double multiply_subtract(double a, double b, double c) { return __fma_rn(a, b, -c); }
LCP_INLINE inline double subtract_product(double a, double b, double c) { return __fma_rn(-a, b, c); }
LCP_INLINE inline float multiply_add(float a, float b, float c) { return __fmaf_rn(a, b, c); }
LCP_INLINE inline float multiply_subtract(float a, float b, float c) { return __fmaf_rn(a, b, -c); }
LCP_INLINE inline float subtract_product(float a, float b, float c) { return __fmaf_rn(-a, b, c); }

template <class V>
struct SignBits;
template <>
struct SignBits<double> {
  using Bits = std::int64_t;
  LCP_INLINE static Bits of(double x) { return __double_as_longlong(x); }
  LCP_INLINE static double from(Bits x) { return __longlong_as_double(x); }
  LCP_INLINE static double choose(Bits flag, double x, double y) { return flag < 0 ? x : y; }
};
template <>
struct SignBits<float> {
  using Bits = std::int32_t;
  LCP_INLINE static Bits of(float x) { return __float_as_int(x); }
  LCP_INLINE static float from(Bits x) { return __int_as_float(x); }
  LCP_INLINE static float choose(Bits flag, float x, float y) { return flag < 0 ? x : y; }
};

}  // namespace lcp::simd::LCP_ISA
