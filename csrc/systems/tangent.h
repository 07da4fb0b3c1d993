// Derivatives in forward mode of formulas of vectors, one trajectory in each lane.
#pragma once

#include "systems/numbers.h"

namespace lcp::systems::LCP_ISA {

/// A number and its change. A number of type V does not change.
struct Tangent {
  V value, change;

  LCP_INLINE friend Tangent operator+(const Tangent& a, const Tangent& b) {
    return {a.value + b.value, a.change + b.change};
  }
  LCP_INLINE friend Tangent operator+(const Tangent& a, const V& b) { return {a.value + b, a.change}; }
  LCP_INLINE friend Tangent operator+(const V& a, const Tangent& b) { return {a + b.value, b.change}; }
  LCP_INLINE friend Tangent operator-(const Tangent& a) { return {-a.value, -a.change}; }
  LCP_INLINE friend Tangent operator-(const Tangent& a, const Tangent& b) {
    return {a.value - b.value, a.change - b.change};
  }
  LCP_INLINE friend Tangent operator-(const Tangent& a, const V& b) { return {a.value - b, a.change}; }
  LCP_INLINE friend Tangent operator-(const V& a, const Tangent& b) { return {a - b.value, -b.change}; }
  LCP_INLINE friend Tangent operator*(const Tangent& a, const Tangent& b) {
    return {a.value * b.value, multiply_add(a.value, b.change, a.change * b.value)};
  }
  LCP_INLINE friend Tangent operator*(const Tangent& a, const V& b) { return {a.value * b, a.change * b}; }
  LCP_INLINE friend Tangent operator*(const V& a, const Tangent& b) { return {a * b.value, a * b.change}; }
  LCP_INLINE friend Tangent operator/(const Tangent& a, const Tangent& b) {
    const V ratio = a.value / b.value;
    return {ratio, (a.change - ratio * b.change) / b.value};
  }
  LCP_INLINE friend Tangent operator/(const V& a, const Tangent& b) {
    const V ratio = a / b.value;
    return {ratio, -ratio * b.change / b.value};
  }
};

LCP_INLINE inline const V& value_of(const Tangent& x) { return x.value; }

template <>
LCP_INLINE inline Tangent constant<Tangent>(const V& value) {
  return {value, V(0)};
}

LCP_INLINE inline Tangent choose(const Mask<V>& mask, const Tangent& a, const Tangent& b) {
  return {choose(mask, a.value, b.value), choose(mask, a.change, b.change)};
}
LCP_INLINE inline Tangent choose(const Mask<V>& mask, const Tangent& a, const V& b) {
  return {choose(mask, a.value, b), choose(mask, a.change, V(0))};
}
LCP_INLINE inline Tangent choose(const Mask<V>& mask, const V& a, const Tangent& b) {
  return {choose(mask, a, b.value), choose(mask, V(0), b.change)};
}

LCP_INLINE inline Tangent held(const Mask<V>& still, const Tangent& x, bool is_smoothed) {
  return {choose(still, V(0), x.value), is_smoothed ? x.change : choose(still, V(0), x.change)};
}

/// x, with another value and the same change.
LCP_INLINE inline Tangent with_value(const Tangent& x, const V& value) { return {value, x.change}; }

LCP_INLINE inline Tangent square_root(const Tangent& x) {
  const V root = square_root(x.value);
  return {root, x.change / (root + root)};
}
LCP_INLINE inline Tangent cosine(const Tangent& x) { return {cosine(x.value), -sine(x.value) * x.change}; }
LCP_INLINE inline Tangent sine(const Tangent& x) { return {sine(x.value), cosine(x.value) * x.change}; }

}  // namespace lcp::systems::LCP_ISA
