// The states of pairs (solver/find_pair_states.h) in vectors that hold one problem in each lane.
#pragma once

#include "simd/lanes.h"
#include "solver/find_pair_states.h"

namespace lcp::batch::LCP_ISA {

using namespace simd::LCP_ISA;

/// The arithmetic of find_pair_states for one problem in each lane.
template <class T>
struct LaneArithmetic {
  using Element = T;
  using Number = Lanes<T>;
  using Flag = Mask<Lanes<T>>;
  LCP_INLINE static Number abs(const Number& x) { return stdx::abs(x); }
  LCP_INLINE static Number max(const Number& x, const Number& y) { return stdx::max(x, y); }
  LCP_INLINE static Number multiply_subtract(const Number& x, const Number& y, const Number& z) {
    return simd::LCP_ISA::multiply_subtract(x, y, z);
  }
  LCP_INLINE static Number select(const Flag& flag, const Number& x, const Number& y) {
    Number result = y;
    stdx::where(flag, result) = x;
    return result;
  }
  LCP_INLINE static bool any(const Flag& flag) { return stdx::any_of(flag); }
};

/// The states of one pair, as the numbers of solver::PairState.
template <class T>
LCP_INLINE inline Lanes<T> state_numbers(const Mask<Lanes<T>>& basic, const Mask<Lanes<T>>& tied) {
  Lanes<T> state = T(solver::PairState::kNonbasic);
  stdx::where(tied, state) = T(solver::PairState::kTied);
  stdx::where(basic, state) = T(solver::PairState::kBasic);
  return state;
}

/// Whether the pair with these states is differentiated as active, w_i = 0.
template <class V>
LCP_INLINE inline Mask<V> is_active(const V& state, bool tied_active) {
  return state == V(solver::PairState::kBasic) || (Mask<V>(tied_active) && state == V(solver::PairState::kTied));
}

}  // namespace lcp::batch::LCP_ISA
