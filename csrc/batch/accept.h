// The acceptance of solutions of small problems by enumeration, and the states of their pairs, one problem in each
// lane.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "batch/states.h"
#include "batch/verify.h"
#include "simd/lanes.h"

namespace lcp::batch::LCP_ISA {

using namespace simd::LCP_ISA;

template <int N, class T>
LCP_INLINE inline Lanes<T> largest_of(const Lanes<T>* q) {
  Lanes<T> largest = stdx::abs(q[0]);
  for (int i = 1; i < N; ++i) largest = stdx::max(largest, stdx::abs(q[i]));
  return largest;
}

// Fills w, the scales s_i of verify.h and sum = M z + q; returns whether z is a solution. An enumerated basis is solved
// by determinants, whose rounding errors are those of their terms. A row may therefore miss by a quarter of the
// tolerance.
template <int N, class T, class L>
LCP_INLINE inline Mask<Lanes<L>> verify_enumerated(const Lanes<L>* M, const Lanes<L>* magnitude, const Lanes<L>* q,
                                                   Lanes<L> largest_q, L tolerance, const Lanes<L>* z, Lanes<L>* w,
                                                   Lanes<L>* scale, Lanes<L>* sum) {
  using V = Lanes<L>;
  const auto in = [](const V* x)
                      LCP_INLINE_LAMBDA { return [x](int i, int j) LCP_INLINE_LAMBDA { return x[i * N + j]; }; };
  const auto at = [](const V* x) LCP_INLINE_LAMBDA { return [x](int i) LCP_INLINE_LAMBDA { return x[i]; }; };
  return verify<T, L>(
      std::integral_constant<int, N>{}, in(M), in(magnitude), at(q), at(z), largest_q, tolerance,
      [&](const V&) LCP_INLINE_LAMBDA { return (tolerance / 4) * largest_q; },
      [w, scale, sum](int i, const V& w_i, const V& s_i, const V& sum_i) LCP_INLINE_LAMBDA {
        w[i] = w_i;
        scale[i] = s_i;
        sum[i] = sum_i;
      });
}

// Fills the states of all pairs, as numbers; where seeks_doubt, returns in which lanes they are doubtful. Not inlined,
// so that all solve kernels share it.
template <int N, class L, bool seeks_doubt>
LCP_NOINLINE Mask<Lanes<L>> find_states(double epsilon, const Lanes<L>* M, const Lanes<L>* q, const Lanes<L>* z,
                                        const Lanes<L>* w, const Lanes<L>* scale, Lanes<L>* states) {
  Lanes<L> limit[N], excess[N];
  Mask<Lanes<L>> basic[N], tied[N], negligible[N];
  const auto at = [](const Lanes<L>* x) LCP_INLINE_LAMBDA { return [x](int i) LCP_INLINE_LAMBDA { return x[i]; }; };
  return solver::find_pair_states<LaneArithmetic<L>, seeks_doubt>(
      std::integral_constant<int, N>{}, std::integral_constant<int, N>{}, epsilon,
      [M](int i, int j) LCP_INLINE_LAMBDA { return M[i * N + j]; }, at(q), at(z), at(w), at(scale),
      {limit, excess, basic, negligible, tied},
      [states, &tied](int j, const auto& is_basic)
          LCP_INLINE_LAMBDA { states[j] = state_numbers<L>(is_basic, tied[j]); });
}

}  // namespace lcp::batch::LCP_ISA
