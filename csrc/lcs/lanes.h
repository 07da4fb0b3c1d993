// Trajectories in the lanes of vectors: the ways of systems and their steps from memory to the lanes and back.
#pragma once

#include <cstddef>
#include <cstdint>

#include "batch/interleave.h"
#include "lcs/system.h"
#include "simd/lanes.h"

namespace lcp::lcs::LCP_ISA {

using namespace simd::LCP_ISA;

// Memory that is given out piece by piece, each of whole vectors.
class Workspace {
 public:
  explicit Workspace(double* memory) : next_(reinterpret_cast<std::byte*>(memory)) {}

  template <class Object>
  LCP_INLINE Object* take(std::ptrdiff_t count) {
    auto* const taken = reinterpret_cast<Object*>(next_);
    next_ += static_cast<std::ptrdiff_t>(sizeof(Object)) * count;
    return taken;
  }

 private:
  std::byte* next_;
};

// A matrix or vector of each trajectory, entry after entry, for each vector of trajectories, or for all of them.
template <class L>
struct Entries {
  const Lanes<L>* data;
  int size;
  bool shared;
  bool zero;  // whether it is 0 for all trajectories, so that its products need not be added

  LCP_INLINE const Lanes<L>* of(int v) const { return data + (shared ? 0 : std::ptrdiff_t{size} * v); }
};

// `size` numbers of each of `lanes` trajectories, at most a whole vector; 0 in the lanes behind.
template <class L, class Stored>
LCP_INLINE inline void read_some(int lanes, int size, const Stored* p, Lanes<L>* out) {
  for (int c = 0; c < size; ++c) {
    alignas(64) L number[kLanes<L>] = {};
    for (int l = 0; l < lanes; ++l) number[l] = static_cast<L>(p[l * size + c]);
    out[c] = Lanes<L>(number, stdx::vector_aligned);
  }
}
template <class L, class Stored>
LCP_INLINE inline void write_some(int lanes, int size, const Lanes<L>* in, Stored* p) {
  for (int c = 0; c < size; ++c) {
    alignas(64) L number[kLanes<L>];
    in[c].copy_to(number, stdx::vector_aligned);
    for (int l = 0; l < lanes; ++l) p[l * size + c] = static_cast<Stored>(number[l]);
  }
}

// Reads as read_some does, but fast where `size` is small, as it often is.
template <class L, class Stored>
LCP_INLINE inline void read_lanes(int lanes, int size, const Stored* p, Lanes<L>* out) {
  if (lanes == kLanes<L>) {
    switch (size) {
      case 0:
        return;
      case 1:
        return batch::LCP_ISA::load<1, L>(p, out);
      case 2:
        return batch::LCP_ISA::load<2, L>(p, out);
      case 3:
        return batch::LCP_ISA::load<3, L>(p, out);
      case 4:
        return batch::LCP_ISA::load<4, L>(p, out);
      default:
        break;
    }
  }
  read_some<L>(lanes, size, p, out);
}
template <class L, class Stored>
LCP_INLINE inline void write_lanes(int lanes, int size, const Lanes<L>* in, Stored* p) {
  if (lanes == kLanes<L>) {
    switch (size) {
      case 0:
        return;
      case 1:
        return batch::LCP_ISA::store<1, L>(in, p);
      case 2:
        return batch::LCP_ISA::store<2, L>(in, p);
      case 3:
        return batch::LCP_ISA::store<3, L>(in, p);
      case 4:
        return batch::LCP_ISA::store<4, L>(in, p);
      default:
        break;
    }
  }
  write_some<L>(lanes, size, in, p);
}

// Reads the numbers of vector v of the trajectories at step s.
template <class L, class Stored>
LCP_INLINE inline void read_step(const StepsView<Stored>& view, std::int64_t s, int v, int lanes, int size,
                                 Lanes<L>* out) {
  const Stored* const p = view.data + s * view.stride;
  if (view.shared) {
    for (int c = 0; c < size; ++c) out[c] = Lanes<L>(static_cast<L>(p[c]));
  } else {
    read_lanes<L>(lanes, size, p + std::ptrdiff_t{v} * kLanes<L> * size, out);
  }
}

// Fetches `size` numbers of each trajectory of a vector into the cache, to be read or written.
template <class L, class Stored>
LCP_INLINE inline void fetch(const Stored* p, int size) {
  constexpr std::ptrdiff_t kLine = 64;
  const auto* const bytes = reinterpret_cast<const char*>(p);
  const std::ptrdiff_t count = std::ptrdiff_t{size} * kLanes<L> * static_cast<int>(sizeof(Stored));
  for (std::ptrdiff_t first = 0; first < count; first += kLine) __builtin_prefetch(bytes + first, 1);
}
template <class L, class Stored>
LCP_INLINE inline void fetch_step(const StepsView<Stored>& view, std::int64_t s, int v, int size) {
  if (!view.shared) fetch<L>(view.data + s * view.stride + std::ptrdiff_t{v} * kLanes<L> * size, size);
}

// The number of lanes of vector v that are trajectories.
template <class L>
LCP_INLINE inline int lanes_of(std::int64_t count, int v) {
  const std::int64_t left = count - std::int64_t{v} * kLanes<L>;
  return left < kLanes<L> ? static_cast<int>(left) : kLanes<L>;
}

template <class L, class T>
Entries<L> interleaved(const BatchView<T>& view, int size, std::int64_t count, int vectors, Workspace& workspace) {
  if (view.shared) {
    auto* const data = workspace.take<Lanes<L>>(size);
    bool zero = true;
    for (int c = 0; c < size; ++c) {
      data[c] = Lanes<L>(static_cast<L>(view.data[c]));
      zero = zero && view.data[c] == 0;
    }
    return {data, size, true, zero};
  }
  auto* const data = workspace.take<Lanes<L>>(std::ptrdiff_t{size} * vectors);
  for (int v = 0; v < vectors; ++v) {
    const std::ptrdiff_t first = std::ptrdiff_t{v} * size;
    read_some<L>(lanes_of<L>(count, v), size, view.data + first * kLanes<L>, data + first);
  }
  return {data, size, false, false};
}

// 0 for the numbers x of the n pairs that are directions of a contact that sticks, see cone.h.
template <class V>
LCP_INLINE inline void hold(int n, const int* cone, const V* z, const V* w, V* x) {
  const V zero = 0;
  for (int j = 0; j < n; ++j) {
    bool is_cone = false;
    V largest = w[j];  // the largest of the unused friction and the forces, which are >= 0
    for (int i = 0; i < n; ++i) {
      if (cone[i] != j) continue;
      is_cone = true;
      largest = stdx::max(largest, z[i]);
    }
    if (!is_cone) continue;
    const Mask<V> held = largest > zero && z[j] == zero;
    for (int i = 0; i < n; ++i) {
      if (cone[i] == j) stdx::where(held, x[i]) = zero;
    }
  }
}

}  // namespace lcp::lcs::LCP_ISA
