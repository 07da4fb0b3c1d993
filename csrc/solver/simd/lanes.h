// Vectors whose lanes hold one problem each. Everything here is compiled once for each instruction set, in a namespace
// of its own; see kernels.h.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <experimental/simd>
#include <limits>
#include <type_traits>
#include <utility>

#ifdef __AVX2__
#include <immintrin.h>
#endif

// A kernel is one straight line of code that lives in registers; compilers give up inlining long before that.
#define LCP_INLINE __attribute__((always_inline))

namespace lcp::solver::LCP_ISA {

namespace stdx = std::experimental;

template <class T>
using Lanes = stdx::native_simd<T>;

template <class T>
inline constexpr int kLanes = static_cast<int>(Lanes<T>::size());

template <class V>
using Element = typename V::value_type;

template <class V>
using Mask = typename V::mask_type;

// Calls function(std::integral_constant<int, k>) for k = 0..count-1.
template <int count, class Function>
LCP_INLINE inline void unroll(const Function& function) {
  [&]<int... k>(std::integer_sequence<int, k...>) LCP_INLINE { (function(std::integral_constant<int, k>{}), ...); }
  (std::make_integer_sequence<int, count>{});
}

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

// Logic on sign bits, also those of zeros and NaNs; the other bits of a result mean nothing.
template <class V>
struct SignBits {
  using Integer = std::conditional_t<sizeof(Element<V>) == 8, std::int64_t, std::int32_t>;
  using Bits [[gnu::vector_size(sizeof(V))]] = Integer;
  LCP_INLINE static Bits of(V x) { return std::bit_cast<Bits>(x); }
  LCP_INLINE static V from(Bits x) { return std::bit_cast<V>(x); }
};
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
  using Vector [[gnu::vector_size(sizeof(V))]] = Element<V>;
  return std::bit_cast<V>(SignBits<V>::of(x) < 0 ? std::bit_cast<Vector>(y) : std::bit_cast<Vector>(z));
}
template <class V>
LCP_INLINE inline Mask<V> is_negative(V x) {
  return stdx::copysign(V(1), x) < V(0);
}

// The compiler's own vectors, which it can shuffle.
template <class T>
using Native [[gnu::vector_size(sizeof(Lanes<T>))]] = T;

// Lane l of the result is lane pick(l) of (a, b).
template <class T, class Pick>
LCP_INLINE inline Native<T> shuffle(Native<T> a, Native<T> b, Pick) {
  return [&]<int... l>(std::integer_sequence<int, l...>) LCP_INLINE {
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

template <int width, int by>
struct Later {
  static constexpr int pick(int l) { return l + by < width ? l + by : l; }
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

// As many vectors as they have lanes: x[i] lane l <-> x[l] lane i.
template <class T>
LCP_INLINE inline void transpose(Native<T>* x) {
  constexpr int width = kLanes<T>;
  unroll<std::countr_zero(static_cast<unsigned>(width))>([&](auto k) LCP_INLINE {
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

// Number c of each problem lies in a lane of its own where `count` is odd: in memory's order, position l count + c.
// Merge: of (what is merged, vector `next`), those of vector `next`; Gather: into the order of the problems.
template <int count, int width, int c, int next>
struct Merge {
  static constexpr int pick(int l) {
    for (int position = next * width; position < (next + 1) * width; ++position) {
      if (position % count == c && position % width == l) return width + l;
    }
    return l;
  }
};
template <int count, int width, int c>
struct Gather {
  static constexpr int pick(int l) { return (l * count + c) % width; }
};
// The inverse of both: each number to its lane, then those of vector `target` from (what is merged, that of number c).
template <int count, int width, int c>
struct Scatter {
  static constexpr int pick(int lane) {
    for (int l = 0; l < width; ++l) {
      if ((l * count + c) % width == lane) return l;
    }
    return 0;
  }
};
template <int count, int width, int target, int c>
struct Pick {
  static constexpr int pick(int lane) { return (target * width + lane) % count == c ? width + lane : lane; }
};

// For even counts, one of `count` vectors from as many, merged one after another: the first two, then (what is merged,
// the next). Collect: number c of each problem from memory's order; Spread: memory's order from vectors of one number
// each.
template <int count, int width, int c, int next>
struct Collect {
  static constexpr int pick(int l) {
    const int position = l * count + c;
    if (next == 1) return position < 2 * width ? position : l;
    return position / width == next ? width + position % width : l;
  }
};
template <int count, int width, int target, int next>
struct Spread {
  static constexpr int pick(int l) {
    const int problem = (target * width + l) / count;
    const int c = (target * width + l) % count;
    if (next == 1) return c == 0 ? problem : c == 1 ? width + problem : l;
    return c == next ? width + problem : l;
  }
};

// A vector of T from as many numbers in memory, which may be floats where T is double, and back.
template <class T, class Stored>
LCP_INLINE inline Native<T> read(const Stored* p) {
  using Memory [[gnu::vector_size(sizeof(Stored) * kLanes<T>)]] = Stored;
  Memory x;
  std::memcpy(&x, p, sizeof x);
  return __builtin_convertvector(x, Native<T>);
}
template <class T, class Stored>
LCP_INLINE inline void write(Native<T> x, Stored* p) {
  using Memory [[gnu::vector_size(sizeof(Stored) * kLanes<T>)]] = Stored;
  const Memory converted = __builtin_convertvector(x, Memory);
  std::memcpy(p, &converted, sizeof converted);
}

// x as a vector of Stored would hold it.
template <class Stored, class V>
LCP_INLINE inline V rounded(V x) {
  using Memory [[gnu::vector_size(sizeof(Stored) * V::size())]] = Stored;
  const auto native = std::bit_cast<Native<Element<V>>>(x);
  return std::bit_cast<V>(__builtin_convertvector(__builtin_convertvector(native, Memory), Native<Element<V>>));
}

// Reads `count` numbers of each of kLanes<T> problems that lie one behind another.
template <int count, class T, class Stored>
LCP_INLINE inline void load(const Stored* p, Lanes<T>* out) {
  constexpr int width = kLanes<T>;
  if constexpr (count < width && count > width / 2) {
    // One square, whose rows go beyond their problem; the last ones begin earlier, not to go beyond the memory.
    Native<T> x[width];
    unroll<width>([&](auto l) LCP_INLINE {
      constexpr int late = l * count + width - width * count;
      x[l] = read<T>(p + (late > 0 ? width * count - width : l * count));
      if constexpr (late > 0) x[l] = shuffle<T>(x[l], x[l], Later<width, late>{});
    });
    transpose<T>(x);
    for (int c = 0; c < count; ++c) out[c] = std::bit_cast<Lanes<T>>(x[c]);
  } else if constexpr (count < width) {
    Native<T> in[count];
    for (int k = 0; k < count; ++k) in[k] = read<T>(p + k * width);
    unroll<count>([&](auto c) LCP_INLINE {
      Native<T> x = in[0];
      if constexpr (count % 2 == 1) {
        unroll<count - 1>([&](auto k) LCP_INLINE { x = shuffle<T>(x, in[k + 1], Merge<count, width, c, k + 1>{}); });
        x = shuffle<T>(x, x, Gather<count, width, c>{});
      } else {
        unroll<count - 1>([&](auto k) LCP_INLINE { x = shuffle<T>(x, in[k + 1], Collect<count, width, c, k + 1>{}); });
      }
      out[c] = std::bit_cast<Lanes<T>>(x);
    });
  } else {
    // Squares of the transpose; the last one overlaps.
    unroll<(count + width - 1) / width>([&](auto square) LCP_INLINE {
      constexpr int first = square * width;
      constexpr int base = first + width <= count ? first : count - width;
      Native<T> x[width];
      for (int l = 0; l < width; ++l) x[l] = read<T>(p + l * count + base);
      transpose<T>(x);
      for (int c = first; c < count && c < first + width; ++c) out[c] = std::bit_cast<Lanes<T>>(x[c - base]);
    });
  }
}

// The inverse of load.
template <int count, class T, class Stored>
LCP_INLINE inline void store(const Lanes<T>* in, Stored* p) {
  constexpr int width = kLanes<T>;
  if constexpr (count < width && count % 2 == 1) {
    Native<T> x[count];
    unroll<count>([&](auto c) LCP_INLINE {
      const auto number = std::bit_cast<Native<T>>(in[c]);
      x[c] = shuffle<T>(number, number, Scatter<count, width, c>{});
    });
    unroll<count>([&](auto target) LCP_INLINE {
      Native<T> merged = x[0];
      unroll<count - 1>([&](auto k)
                            LCP_INLINE { merged = shuffle<T>(merged, x[k + 1], Pick<count, width, target, k + 1>{}); });
      write<T>(merged, p + target * width);
    });
  } else if constexpr (count < width) {
    unroll<count>([&](auto target) LCP_INLINE {
      Native<T> x = std::bit_cast<Native<T>>(in[0]);
      unroll<count - 1>([&](auto k) LCP_INLINE {
        x = shuffle<T>(x, std::bit_cast<Native<T>>(in[k + 1]), Spread<count, width, target, k + 1>{});
      });
      write<T>(x, p + target * width);
    });
  } else {
    unroll<(count + width - 1) / width>([&](auto square) LCP_INLINE {
      constexpr int base = square * width + width <= count ? square * width : count - width;
      Native<T> x[width];
      for (int c = 0; c < width; ++c) x[c] = std::bit_cast<Native<T>>(in[base + c]);
      transpose<T>(x);
      for (int l = 0; l < width; ++l) write<T>(x[l], p + l * count + base);
    });
  }
}

// The same number in each lane.
template <int count, class T, class Stored>
LCP_INLINE inline void broadcast(const Stored* p, Lanes<T>* out) {
  for (int c = 0; c < count; ++c) out[c] = Lanes<T>(static_cast<T>(p[c]));
}

}  // namespace lcp::solver::LCP_ISA
