// Vectors whose lanes hold one problem each. Everything here is compiled once for each instruction set, in a namespace
// of its own; see instruction_set.h. For GPUs a vector is one number, see one_lane.h.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#ifdef __CUDACC__
#include "simd/one_lane.h"
#else
#include <experimental/simd>
#endif
#ifdef __AVX2__
#include <immintrin.h>
#endif

#include "simd/inline.h"

namespace lcp::simd::LCP_ISA {

#ifndef __CUDACC__
namespace stdx = std::experimental;

template <class T>
using Lanes = stdx::native_simd<T>;

template <class T>
inline constexpr int kLanes = static_cast<int>(Lanes<T>::size());

template <class V>
using Element = typename V::value_type;

template <class V>
using Mask = typename V::mask_type;

// a b + c, a b - c and c - a b: rounded once where the instruction set fuses them, whatever the compiler's flags.
#if defined __AVX512F__
#define LCP_FUSED(name, intrinsic, unfused)                                                                  \
  LCP_INLINE inline Lanes<double> name(Lanes<double> a, Lanes<double> b, Lanes<double> c) {                  \
    return Lanes<double>(                                                                                    \
        _mm512_##intrinsic##_pd(static_cast<__m512d>(a), static_cast<__m512d>(b), static_cast<__m512d>(c))); \
  }                                                                                                          \
  LCP_INLINE inline Lanes<float> name(Lanes<float> a, Lanes<float> b, Lanes<float> c) {                      \
    return Lanes<float>(                                                                                     \
        _mm512_##intrinsic##_ps(static_cast<__m512>(a), static_cast<__m512>(b), static_cast<__m512>(c)));    \
  }
#elif defined __AVX2__
#define LCP_FUSED(name, intrinsic, unfused)                                                                  \
  LCP_INLINE inline Lanes<double> name(Lanes<double> a, Lanes<double> b, Lanes<double> c) {                  \
    return Lanes<double>(                                                                                    \
        _mm256_##intrinsic##_pd(static_cast<__m256d>(a), static_cast<__m256d>(b), static_cast<__m256d>(c))); \
  }                                                                                                          \
  LCP_INLINE inline Lanes<float> name(Lanes<float> a, Lanes<float> b, Lanes<float> c) {                      \
    return Lanes<float>(                                                                                     \
        _mm256_##intrinsic##_ps(static_cast<__m256>(a), static_cast<__m256>(b), static_cast<__m256>(c)));    \
  }
#else
#define LCP_FUSED(name, intrinsic, unfused) \
  template <class V>                        \
  LCP_INLINE inline V name(V a, V b, V c) { \
    return unfused;                         \
  }
#endif
LCP_FUSED(multiply_add, fmadd, a* b + c)
LCP_FUSED(multiply_subtract, fmsub, a* b - c)
LCP_FUSED(subtract_product, fnmadd, c - a * b)
#undef LCP_FUSED

// The bits of the numbers of a vector.
template <class V>
struct SignBits {
  using Integer = std::conditional_t<sizeof(Element<V>) == 8, std::int64_t, std::int32_t>;
  using Bits [[gnu::vector_size(sizeof(V))]] = Integer;
  using Numbers [[gnu::vector_size(sizeof(V))]] = Element<V>;
  LCP_INLINE static Bits of(V x) { return std::bit_cast<Bits>(x); }
  LCP_INLINE static V from(Bits x) { return std::bit_cast<V>(x); }
  // x where the flag is negative, else y.
  LCP_INLINE static V choose(Bits flag, V x, V y) {
    return std::bit_cast<V>(flag < 0 ? std::bit_cast<Numbers>(x) : std::bit_cast<Numbers>(y));
  }
};
#endif

// Calls function(std::integral_constant<int, k>) for k = 0..count-1.
template <int count, class Function>
LCP_INLINE inline void unroll(const Function& function) {
  [&]<int... k>(std::integer_sequence<int, k...>) LCP_INLINE_LAMBDA {
    (function(std::integral_constant<int, k>{}), ...);
  }
  (std::make_integer_sequence<int, count>{});
}

// Logic on sign bits, including the sign bits of zeros and NaNs. A number serves as a flag that is true where it is
// negative; the other bits of a result have no meaning.
template <class V>
LCP_INLINE inline V either(V x, V y) {
  return SignBits<V>::from(SignBits<V>::of(x) | SignBits<V>::of(y));
}
template <class V>
LCP_INLINE inline V either_not(V x, V y) {
  return SignBits<V>::from(SignBits<V>::of(x) | ~SignBits<V>::of(y));
}
template <class V>
LCP_INLINE inline V both(V x, V y) {
  return SignBits<V>::from(SignBits<V>::of(x) & SignBits<V>::of(y));
}
template <class V>
LCP_INLINE inline V but_not(V x, V y) {
  return SignBits<V>::from(SignBits<V>::of(x) & ~SignBits<V>::of(y));
}
template <class V>
LCP_INLINE inline V either_differ(V x, V y, V z) {
  return SignBits<V>::from(SignBits<V>::of(x) | (SignBits<V>::of(y) ^ SignBits<V>::of(z)));
}
template <class V>
LCP_INLINE inline V either_equal(V x, V y, V z) {
  return SignBits<V>::from(SignBits<V>::of(x) | ~(SignBits<V>::of(y) ^ SignBits<V>::of(z)));
}

// y where x is negative, else z.
template <class V>
LCP_INLINE inline V choose_if_negative(V x, V y, V z) {
  return SignBits<V>::choose(SignBits<V>::of(x), y, z);
}
template <class V>
LCP_INLINE inline Mask<V> is_negative(V x) {
  return stdx::copysign(V(1), x) < V(0);
}

#ifndef __CUDACC__
// A vector in memory at an address that is a multiple of its size.
LCP_INLINE inline Lanes<double> load_aligned(const double* p) { return Lanes<double>(p, stdx::vector_aligned); }
LCP_INLINE inline void store_aligned(Lanes<double> x, double* p) { x.copy_to(p, stdx::vector_aligned); }

// GCC's built-in vectors, for which there are shuffles.
template <class T>
using Native [[gnu::vector_size(sizeof(Lanes<T>))]] = T;

// Lane l of the result is lane pick(l) of (a, b).
template <class T, class Pick>
LCP_INLINE inline Native<T> shuffle(Native<T> a, Native<T> b, Pick) {
  return [&]<int... l>(std::integer_sequence<int, l...>) LCP_INLINE_LAMBDA {
    return __builtin_shufflevector(a, b, Pick::pick(l)...);
  }
  (std::make_integer_sequence<int, kLanes<T>>{});
}

// The steps of a transpose that every instruction set does fast. Zip: units of a and b in turn, from the lower or the
// higher halves of each 16 bytes. Unzip: every other 16 bytes of a, then of b.
template <int width, int lane, int unit, bool high>
struct Zip {
  static constexpr int pick(int l) {
    const int in_lane = l % lane;
    const int source = l - in_lane + (in_lane / (2 * unit)) * unit + in_lane % unit + (high ? lane / 2 : 0);
    return in_lane / unit % 2 == 0 ? source : width + source;
  }
};
template <int lane, bool odd>
struct Unzip {
  static constexpr int pick(int l) {
    return 2 * (l - l % lane) + l % lane + (odd ? lane : 0);  // behind a comes b
  }
};

// One step of the transpose of as many vectors as they have lanes, for vectors whose numbers differ by `step`.
template <class T>
struct Exchanged {
  Native<T> low, high;
};
template <class T, int step>
LCP_INLINE inline Exchanged<T> exchange(Native<T> a, Native<T> b) {
  constexpr int lane = 16 / sizeof(T);
  if constexpr (step < lane) {
    return {shuffle<T>(a, b, Zip<kLanes<T>, lane, step, false>{}),
            shuffle<T>(a, b, Zip<kLanes<T>, lane, step, true>{})};
  } else {
    return {shuffle<T>(a, b, Unzip<lane, false>{}), shuffle<T>(a, b, Unzip<lane, true>{})};
  }
}

// Transposes as many vectors as they have lanes: x[i] lane l <-> x[l] lane i.
template <class T>
LCP_INLINE inline void transpose(Native<T>* x) {
  constexpr int width = kLanes<T>;
  unroll<std::countr_zero(static_cast<unsigned>(width))>([&](auto k) LCP_INLINE_LAMBDA {
    constexpr int step = 1 << k;
    for (int i = 0; i < width; ++i) {
      if ((i & step) != 0) continue;
      const auto [low, high] = exchange<T, step>(x[i], x[i + step]);
      x[i] = low;
      x[i + step] = high;
    }
  });
  if constexpr (sizeof(T) == 4) {  // two steps within 16 bytes leave the middle ones exchanged
    for (int i = 1; i < width; i += 4) {
      const Native<T> kept = x[i];
      x[i] = x[i + 1];
      x[i + 1] = kept;
    }
  }
}

// Small integers in bytes as numbers, and back. Compilers convert them one by one. (The masks that select all lanes
// keep GCC 12 from warning of the undefined vectors in its own headers.)
template <class T>
LCP_INLINE inline Native<T> read_bytes(const std::int8_t* p) {
#if defined __AVX512F__
  if constexpr (sizeof(T) == 8) {
    const __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(p));
    return std::bit_cast<Native<T>>(_mm512_maskz_cvtepi32_pd(0xff, _mm256_cvtepi8_epi32(bytes)));
  }
#elif defined __AVX2__
  if constexpr (sizeof(T) == 8) {
    std::int32_t bytes;
    std::memcpy(&bytes, p, sizeof bytes);
    return std::bit_cast<Native<T>>(_mm256_cvtepi32_pd(_mm_cvtepi8_epi32(_mm_cvtsi32_si128(bytes))));
  }
#endif
  using Bytes [[gnu::vector_size(kLanes<T>)]] = std::int8_t;
  Bytes x;
  std::memcpy(&x, p, sizeof x);
  return __builtin_convertvector(x, Native<T>);
}
template <class T>
LCP_INLINE inline void write_bytes(Native<T> x, std::int8_t* p) {
#if defined __AVX512F__
  if constexpr (sizeof(T) == 8) {
    const __m128i bytes = _mm256_maskz_cvtepi32_epi8(0xff, _mm512_maskz_cvtpd_epi32(0xff, std::bit_cast<__m512d>(x)));
    _mm_storel_epi64(reinterpret_cast<__m128i*>(p), bytes);
  } else {
    const __m128i bytes =
        _mm512_maskz_cvtepi32_epi8(0xffff, _mm512_maskz_cvtps_epi32(0xffff, std::bit_cast<__m512>(x)));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), bytes);
  }
#elif defined __AVX2__
  if constexpr (sizeof(T) == 8) {
    const __m128i words = _mm_packs_epi32(_mm256_cvtpd_epi32(std::bit_cast<__m256d>(x)), _mm_setzero_si128());
    const std::int32_t bytes = _mm_cvtsi128_si32(_mm_packs_epi16(words, words));
    std::memcpy(p, &bytes, sizeof bytes);
  } else {
    const __m256i integers = _mm256_cvtps_epi32(std::bit_cast<__m256>(x));
    const __m128i words = _mm_packs_epi32(_mm256_castsi256_si128(integers), _mm256_extracti128_si256(integers, 1));
    _mm_storel_epi64(reinterpret_cast<__m128i*>(p), _mm_packs_epi16(words, words));
  }
#else
  using Bytes [[gnu::vector_size(kLanes<T>)]] = std::int8_t;
  const Bytes converted = __builtin_convertvector(x, Bytes);
  std::memcpy(p, &converted, sizeof converted);
#endif
}

// A vector of T from as many numbers in memory, which may be floats or bytes where T is double, and back.
template <class T, class Stored>
LCP_INLINE inline Native<T> read(const Stored* p) {
  if constexpr (sizeof(Stored) == 1) {
    return read_bytes<T>(p);
  } else {
    using Memory [[gnu::vector_size(sizeof(Stored) * kLanes<T>)]] = Stored;
    Memory x;
    std::memcpy(&x, p, sizeof x);
    return __builtin_convertvector(x, Native<T>);
  }
}
template <class T, class Stored>
LCP_INLINE inline void write(Native<T> x, Stored* p) {
  if constexpr (sizeof(Stored) == 1) {
    write_bytes<T>(x, p);
  } else {
    using Memory [[gnu::vector_size(sizeof(Stored) * kLanes<T>)]] = Stored;
    const Memory converted = __builtin_convertvector(x, Memory);
    std::memcpy(p, &converted, sizeof converted);
  }
}

// x as a vector of Stored would hold it.
template <class Stored, class V>
LCP_INLINE inline V rounded(V x) {
  using Memory [[gnu::vector_size(sizeof(Stored) * V::size())]] = Stored;
  const auto native = std::bit_cast<Native<Element<V>>>(x);
  return std::bit_cast<V>(__builtin_convertvector(__builtin_convertvector(native, Memory), Native<Element<V>>));
}

#endif

}  // namespace lcp::simd::LCP_ISA
