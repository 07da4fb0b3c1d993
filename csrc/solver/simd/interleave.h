// Problems of any n, between one behind another in memory and one in each lane of vectors in memory.
#pragma once

#include "solver/simd/lanes.h"

namespace lcp::solver::LCP_ISA {

// Lane l of the result is what comes so many lanes earlier in b, or else the end of the first width - by lanes of a.
template <int width, int by>
struct Behind {
  static constexpr int pick(int l) { return l < by ? width - 2 * by + l : width + l - by; }
};

// Vector c of the result holds number c of each of `problems` problems, 1 to kLanes<double>; the lanes behind repeat
// the last one. count > kLanes<double> / 2.
template <class Stored>
LCP_INLINE inline void load_interleaved(int problems, int count, const Stored* p, double* out) {
  constexpr int width = kLanes<double>;
  const auto of = [&](int l) LCP_INLINE { return p + (l < problems ? l : problems - 1) * count; };
  if (count >= width) {
    // By squares of the transpose; the last one overlaps.
    for (int first = 0; first < count; first += width) {
      const int base = first + width <= count ? first : count - width;
      Native<double> x[width];
      for (int l = 0; l < width; ++l) x[l] = read<double>(of(l) + base);
      transpose<double>(x);
      for (int c = 0; c < width; ++c) write<double>(x[c], out + (base + c) * width);
    }
  } else if (problems == width) {
    // One square, whose rows go beyond their problem; the last one begins earlier, not to go beyond the memory.
    Native<double> x[width];
    for (int l = 0; l < width - 1; ++l) x[l] = read<double>(p + l * count);
    x[width - 1] = read<double>(p + width * count - width);
    unroll<width / 2>([&](auto late) LCP_INLINE {
      if (late == width - count) x[width - 1] = shuffle<double>(x[width - 1], x[width - 1], Later<width, late>{});
    });
    transpose<double>(x);
    for (int c = 0; c < count; ++c) write<double>(x[c], out + c * width);
  } else {
    for (int l = 0; l < width; ++l) {
      for (int c = 0; c < count; ++c) out[c * width + l] = static_cast<double>(of(l)[c]);
    }
  }
}

// The inverse of load_interleaved.
template <class Stored>
LCP_INLINE inline void store_interleaved(int problems, int count, const double* in, Stored* p) {
  constexpr int width = kLanes<double>;
  if (count >= width) {
    for (int first = 0; first < count; first += width) {
      const int base = first + width <= count ? first : count - width;
      Native<double> x[width];
      for (int c = 0; c < width; ++c) x[c] = read<double>(in + (base + c) * width);
      transpose<double>(x);
      for (int l = 0; l < problems; ++l) write<double>(x[l], p + l * count + base);
    }
  } else if (problems == width) {
    // Each row's end is overwritten by the next row; the last one begins with the end of the one before.
    Native<double> x[width];
    for (int c = 0; c < width; ++c) x[c] = read<double>(in + (c < count ? c : 0) * width);
    transpose<double>(x);
    unroll<width / 2>([&](auto late) LCP_INLINE {
      if (late == width - count) x[width - 1] = shuffle<double>(x[width - 2], x[width - 1], Behind<width, late>{});
    });
    for (int l = 0; l < width - 1; ++l) write<double>(x[l], p + l * count);
    write<double>(x[width - 1], p + width * count - width);
  } else {
    for (int l = 0; l < problems; ++l) {
      for (int c = 0; c < count; ++c) p[l * count + c] = static_cast<Stored>(in[c * width + l]);
    }
  }
}

// The same numbers in each lane.
template <class Stored>
inline void broadcast_interleaved(int count, const Stored* p, double* out) {
  for (int c = 0; c < count; ++c) {
    Lanes<double>(static_cast<double>(p[c])).copy_to(out + c * kLanes<double>, stdx::vector_aligned);
  }
}

}  // namespace lcp::solver::LCP_ISA
