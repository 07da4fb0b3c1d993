// The rule by which a kernel accepts a solution, for one problem in each lane.
#pragma once

#include <limits>
#include <type_traits>

#include "simd/lanes.h"
#include "solver/find_pair_states.h"

namespace lcp::batch::LCP_ISA {

using namespace simd::LCP_ISA;

// The largest miss of a row's equation, relative to its terms, that rounding errors can cause.
template <class T>
inline constexpr T kNearRoundOff = sizeof(T) == 8 ? T(1e-13) : T(4e-6);

// The largest |q_i|, unless it is 0, below which sums might underflow.
template <class T>
inline constexpr T kSmallestScale = sizeof(T) == 8 ? T(1e-280) : T(1e-30F);

// Calls emit(i, w_i, s_i, (M z + q)_i), with w_i = max(0, (M z + q)_i), 0 where z_i > 0, and s_i = |q_i| + sum_j |M_ij
// z_j|. Returns where z is a solution by the rules of solver/verify.h with half of the tolerance. The other half bounds
// the rounding errors made here.
//
// solver::violation is a function of its own, since it also returns by how much a candidate fails, and sums doubtful
// rows in twice the precision. A candidate that fails here is left to solver::violation.
//   n: int, or an integral constant. z: numbers of type T >= 0 or NaN, computed with as L.
//   M(i, j), magnitude(i, j) = |M_ij|, q(i), z(j): the problem.
//   cap(terms): the largest miss of a row, from the sum of the magnitudes of all terms of all rows.
template <class T, class L, class Size, class Matrix, class Magnitude, class Vector, class Cap, class Emit>
LCP_INLINE inline Mask<Lanes<L>> verify(Size n, const Matrix& M, const Magnitude& magnitude, const Vector& q,
                                        const Vector& z, Lanes<L> largest_q, L tolerance, const Cap& cap,
                                        const Emit& emit) {
  using V = Lanes<L>;
  const V zero = 0;
  V all_terms = 0;
  V largest_miss = 0;
  V wrong = 0;  // negative, by its sign bit, where a row misses by more than the rounding errors of its terms
  solver::for_each_index(n, [&](int i) LCP_INLINE_LAMBDA {
    V sum = q(i);
    V terms = stdx::abs(sum);
    solver::for_each_index(n, [&](int j) LCP_INLINE_LAMBDA {
      const V z_j = z(j);
      sum = multiply_add(M(i, j), z_j, sum);
      terms = multiply_add(magnitude(i, j), z_j, terms);
    });
    V w = stdx::max(zero, sum);
    stdx::where(z(i) > zero, w) = zero;
    const V miss = stdx::abs(sum - w);
    wrong = either(wrong, multiply_subtract(V(kNearRoundOff<T>), terms, miss));
    largest_miss = stdx::max(largest_miss, miss);
    all_terms += terms;
    emit(i, w, terms, sum);
  });
  // all_terms is NaN if a row has a NaN, and larger than any T if a number is.
  const L rounding = 2 * (static_cast<int>(n) + 1) * std::numeric_limits<L>::epsilon() / tolerance;
  const Mask<V> within = all_terms * rounding <= largest_q && largest_miss <= cap(all_terms);
  const Mask<V> usual = largest_q >= kSmallestScale<L> || largest_q == zero;
  return within && usual && all_terms <= std::numeric_limits<T>::max() && !is_negative(wrong);
}

}  // namespace lcp::batch::LCP_ISA
