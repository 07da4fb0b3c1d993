// Converts between problems that lie one behind another in memory and vectors that hold one problem in each lane: in
// registers where the number of entries is a constant, through memory for any number.
#pragma once

#include "simd/lanes.h"

namespace lcp::batch::LCP_ISA {

using namespace simd::LCP_ISA;

template <int width, int by>
struct Later {
  static constexpr int pick(int l) { return l + by < width ? l + by : l; }
};

// The numbers c of all problems, at the positions l count + c in memory, lie in different lanes if `count` is odd.
// Merge takes from vector `next` those lanes that hold a number c, and keeps the others of what has been merged before;
// Gather then brings the lanes into the order of the problems.
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
// The inverse: Scatter brings number c of each problem to its lane in memory's order. Pick takes from the result the
// lanes that belong to vector `target`.
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

// Vectors for even counts: each of the `count` vectors is made by merging all of the source, one after another, the
// first two, then the result with the next. Collect makes the vector of number c from vectors in memory's order; Spread
// makes a vector in memory's order from vectors of one number each.
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

// Reads `count` numbers of each of kLanes<T> problems that lie one behind another.
template <int count, class T, class Stored>
LCP_INLINE inline void load(const Stored* p, Lanes<T>* out) {
  constexpr int width = kLanes<T>;
  if constexpr (count < width && count > width / 2) {
    // One square block. Its rows read beyond their problem; the last rows begin earlier, not to read beyond the memory.
    Native<T> x[width];
    unroll<width>([&](auto l) LCP_INLINE_LAMBDA {
      constexpr int late = l * count + width - width * count;
      x[l] = read<T>(p + (late > 0 ? width * count - width : l * count));
      if constexpr (late > 0) x[l] = shuffle<T>(x[l], x[l], Later<width, late>{});
    });
    transpose<T>(x);
    for (int c = 0; c < count; ++c) out[c] = std::bit_cast<Lanes<T>>(x[c]);
  } else if constexpr (count < width) {
    Native<T> in[count];
    for (int k = 0; k < count; ++k) in[k] = read<T>(p + k * width);
    unroll<count>([&](auto c) LCP_INLINE_LAMBDA {
      Native<T> x = in[0];
      if constexpr (count % 2 == 1) {
        unroll<count - 1>([&](auto k)
                              LCP_INLINE_LAMBDA { x = shuffle<T>(x, in[k + 1], Merge<count, width, c, k + 1>{}); });
        x = shuffle<T>(x, x, Gather<count, width, c>{});
      } else {
        unroll<count - 1>([&](auto k)
                              LCP_INLINE_LAMBDA { x = shuffle<T>(x, in[k + 1], Collect<count, width, c, k + 1>{}); });
      }
      out[c] = std::bit_cast<Lanes<T>>(x);
    });
  } else {
    // The transpose by square blocks; the last block overlaps the one before.
    unroll<(count + width - 1) / width>([&](auto square) LCP_INLINE_LAMBDA {
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
    unroll<count>([&](auto c) LCP_INLINE_LAMBDA {
      const auto number = std::bit_cast<Native<T>>(in[c]);
      x[c] = shuffle<T>(number, number, Scatter<count, width, c>{});
    });
    unroll<count>([&](auto target) LCP_INLINE_LAMBDA {
      Native<T> merged = x[0];
      unroll<count - 1>([&](auto k) LCP_INLINE_LAMBDA {
        merged = shuffle<T>(merged, x[k + 1], Pick<count, width, target, k + 1>{});
      });
      write<T>(merged, p + target * width);
    });
  } else if constexpr (count < width) {
    unroll<count>([&](auto target) LCP_INLINE_LAMBDA {
      Native<T> x = std::bit_cast<Native<T>>(in[0]);
      unroll<count - 1>([&](auto k) LCP_INLINE_LAMBDA {
        x = shuffle<T>(x, std::bit_cast<Native<T>>(in[k + 1]), Spread<count, width, target, k + 1>{});
      });
      write<T>(x, p + target * width);
    });
  } else {
    unroll<(count + width - 1) / width>([&](auto square) LCP_INLINE_LAMBDA {
      constexpr int base = square * width + width <= count ? square * width : count - width;
      Native<T> x[width];
      for (int c = 0; c < width; ++c) x[c] = std::bit_cast<Native<T>>(in[base + c]);
      transpose<T>(x);
      for (int l = 0; l < width; ++l) write<T>(x[l], p + l * count + base);
    });
  }
}

// Reads numbers that all lanes share.
template <int count, class T, class Stored>
LCP_INLINE inline void broadcast(const Stored* p, Lanes<T>* out) {
  for (int c = 0; c < count; ++c) out[c] = Lanes<T>(static_cast<T>(p[c]));
}

// Shifts lanes: lane l of the result is lane l - by of b. For l < by it is one of the last `by` of the first width - by
// lanes of a.
template <int width, int by>
struct Behind {
  static constexpr int pick(int l) { return l < by ? width - 2 * by + l : width + l - by; }
};

// Vector c of the result holds number c of each of `problems` problems, 1 to kLanes<double>; the lanes behind repeat
// the last one. count > kLanes<double> / 2.
template <class Stored>
LCP_INLINE inline void load_interleaved(int problems, int count, const Stored* p, double* out) {
  constexpr int width = kLanes<double>;
  const auto of = [&](int l) LCP_INLINE_LAMBDA { return p + (l < problems ? l : problems - 1) * count; };
  if (count >= width) {
    // The transpose by square blocks; the last block overlaps the one before.
    for (int first = 0; first < count; first += width) {
      const int base = first + width <= count ? first : count - width;
      Native<double> x[width];
      for (int l = 0; l < width; ++l) x[l] = read<double>(of(l) + base);
      transpose<double>(x);
      for (int c = 0; c < width; ++c) write<double>(x[c], out + (base + c) * width);
    }
  } else if (problems == width) {
    // One square block. Its rows read beyond their problem; the last row begins earlier, not to read beyond the memory.
    Native<double> x[width];
    for (int l = 0; l < width - 1; ++l) x[l] = read<double>(p + l * count);
    x[width - 1] = read<double>(p + width * count - width);
    unroll<width / 2>([&](auto late) LCP_INLINE_LAMBDA {
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
    unroll<width / 2>([&](auto late) LCP_INLINE_LAMBDA {
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

// Reads numbers that all lanes share.
template <class Stored>
inline void broadcast_interleaved(int count, const Stored* p, double* out) {
  for (int c = 0; c < count; ++c) {
    Lanes<double>(static_cast<double>(p[c])).copy_to(out + c * kLanes<double>, stdx::vector_aligned);
  }
}

}  // namespace lcp::batch::LCP_ISA
