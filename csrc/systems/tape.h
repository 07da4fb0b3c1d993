// Derivatives in reverse mode of formulas of vectors, one trajectory in each lane. A tape keeps the operations, each
// with its derivatives in the one or two numbers that it takes. Since formulas have no branches (numbers.h), their
// tapes have the same length for all numbers.
#pragma once

#include "systems/numbers.h"

namespace lcp::systems::LCP_ISA {

/// records: whether the tape keeps the operations; else it only counts them.
template <bool records>
class Tape {
 public:
  struct Node {
    V by_first, by_second, adjoint;
    int first, second;  // second is 0 for an operation on one number
  };

  /// memory: as many nodes as the longest tape will have.
  LCP_INLINE explicit Tape(void* memory) : nodes_(static_cast<Node*>(memory)) {}

  LCP_INLINE int size() const { return size_; }
  /// Drops the nodes from `size` on.
  LCP_INLINE void cut(int size) { size_ = size; }

  /// Adds a number that others are computed from, with the adjoint 0; returns its node.
  LCP_INLINE int add() {
    if constexpr (records) nodes_[size_].adjoint = 0;
    return size_++;
  }

  /// Adds a number with these derivatives in the numbers of two nodes; returns its node.
  LCP_INLINE int add(int first, const V& by_first, int second, const V& by_second) {
    if constexpr (records) nodes_[size_] = {by_first, by_second, V(0), first, second};
    return size_++;
  }

  /// The adjoint of a node: the derivative of a sum of results in its number.
  LCP_INLINE const V& adjoint(int node) const { return nodes_[node].adjoint; }
  LCP_INLINE void add_adjoint(int node, const V& by) {
    if constexpr (records) nodes_[node].adjoint += by;
  }

  /// Passes the adjoints of the nodes begin .. end - 1, all of them computed from others, on to these.
  LCP_INLINE void reverse(int end, int begin) {
    for (int k = end - 1; k >= begin; --k) {
      const Node& node = nodes_[k];
      V& of_first = nodes_[node.first].adjoint;
      of_first = multiply_add(node.adjoint, node.by_first, of_first);
      if (node.second == 0) continue;
      V& of_second = nodes_[node.second].adjoint;
      of_second = multiply_add(node.adjoint, node.by_second, of_second);
    }
  }

 private:
  Node* nodes_;
  int size_ = 1;  // node 0 stands for no number
};

/// A number on a tape. A number of type V is a constant beside it.
template <bool records>
struct Taped {
  V value;
  int node;
  Tape<records>* tape;

  /// A number that others are computed from.
  LCP_INLINE static Taped independent(Tape<records>& tape, const V& value) { return {value, tape.add(), &tape}; }

  LCP_INLINE Taped one(const V& result, const V& by) const { return {result, tape->add(node, by, 0, V(0)), tape}; }
  LCP_INLINE Taped two(const V& result, const V& by, const Taped& b, const V& by_b) const {
    return {result, tape->add(node, by, b.node, by_b), tape};
  }

  LCP_INLINE friend Taped operator+(const Taped& a, const Taped& b) { return a.two(a.value + b.value, V(1), b, V(1)); }
  LCP_INLINE friend Taped operator+(const Taped& a, const V& b) { return {a.value + b, a.node, a.tape}; }
  LCP_INLINE friend Taped operator+(const V& a, const Taped& b) { return {a + b.value, b.node, b.tape}; }
  LCP_INLINE friend Taped operator-(const Taped& a) { return a.one(-a.value, V(-1)); }
  LCP_INLINE friend Taped operator-(const Taped& a, const Taped& b) { return a.two(a.value - b.value, V(1), b, V(-1)); }
  LCP_INLINE friend Taped operator-(const Taped& a, const V& b) { return {a.value - b, a.node, a.tape}; }
  LCP_INLINE friend Taped operator-(const V& a, const Taped& b) { return b.one(a - b.value, V(-1)); }
  LCP_INLINE friend Taped operator*(const Taped& a, const Taped& b) {
    return a.two(a.value * b.value, b.value, b, a.value);
  }
  LCP_INLINE friend Taped operator*(const Taped& a, const V& b) { return a.one(a.value * b, b); }
  LCP_INLINE friend Taped operator*(const V& a, const Taped& b) { return b.one(a * b.value, a); }
  LCP_INLINE friend Taped operator/(const Taped& a, const Taped& b) {
    const V inverse = 1.0 / b.value, ratio = a.value / b.value;
    return a.two(ratio, inverse, b, -ratio * inverse);
  }
  LCP_INLINE friend Taped operator/(const V& a, const Taped& b) {
    const V ratio = a / b.value;
    return b.one(ratio, -ratio / b.value);
  }
};

template <bool records>
LCP_INLINE inline const V& value_of(const Taped<records>& x) {
  return x.value;
}

template <bool records>
LCP_INLINE inline Taped<records> choose(const Mask<V>& mask, const Taped<records>& a, const Taped<records>& b) {
  return a.two(choose(mask, a.value, b.value), choose(mask, V(1), V(0)), b, choose(mask, V(0), V(1)));
}
template <bool records>
LCP_INLINE inline Taped<records> choose(const Mask<V>& mask, const Taped<records>& a, const V& b) {
  return a.one(choose(mask, a.value, b), choose(mask, V(1), V(0)));
}
template <bool records>
LCP_INLINE inline Taped<records> choose(const Mask<V>& mask, const V& a, const Taped<records>& b) {
  return b.one(choose(mask, a, b.value), choose(mask, V(0), V(1)));
}

template <bool records>
LCP_INLINE inline Taped<records> held(const Mask<V>& still, const Taped<records>& x, bool is_smoothed) {
  return x.one(choose(still, V(0), x.value), is_smoothed ? V(1) : choose(still, V(0), V(1)));
}

template <bool records>
LCP_INLINE inline Taped<records> cosine(const Taped<records>& x) {
  return x.one(cosine(x.value), -sine(x.value));
}
template <bool records>
LCP_INLINE inline Taped<records> sine(const Taped<records>& x) {
  return x.one(sine(x.value), cosine(x.value));
}

}  // namespace lcp::systems::LCP_ISA
