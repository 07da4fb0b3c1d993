// The numbers of formulas, one for each trajectory, in the lanes of a vector. Formulas have no branches, since lanes
// could take different ones; they choose between numbers by masks.
#pragma once

#include <cmath>
#include <limits>

#include "simd/lanes.h"
#include "simd/square_root.h"

namespace lcp::systems::LCP_ISA {

using namespace simd::LCP_ISA;

using simd::LCP_ISA::square_root;
using V = Lanes<double>;

LCP_INLINE inline const V& value_of(const V& x) { return x; }

/// x, with another value and the same derivative.
LCP_INLINE inline V with_value(const V&, const V& value) { return value; }

/// A number without a derivative.
template <class R>
R constant(const V& value);
template <>
LCP_INLINE inline V constant<V>(const V& value) {
  return value;
}

/// The round-off of numbers of type T, relative to the largest terms of a sum.
template <class T>
inline constexpr double kRoundOff = 64 * std::numeric_limits<T>::epsilon();

/// a where the mask is true, else b.
LCP_INLINE inline V choose(const Mask<V>& mask, const V& a, const V& b) {
  V chosen = b;
  stdx::where(mask, chosen) = a;
  return chosen;
}

/// x, 0 where `still` is true. Its derivative is 0 there, too, unless it is smoothed.
LCP_INLINE inline V held(const Mask<V>& still, const V& x, bool) { return choose(still, V(0), x); }

// Functions of the C library, lane by lane, since vector functions have larger errors.
LCP_INLINE inline V cosine(const V& x) {
  return V([&](auto l) { return std::cos(static_cast<double>(x[l])); });
}
LCP_INLINE inline V sine(const V& x) {
  return V([&](auto l) { return std::sin(static_cast<double>(x[l])); });
}

}  // namespace lcp::systems::LCP_ISA
