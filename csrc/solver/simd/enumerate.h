// All complementary bases of a small problem at once, without a branch, one problem in each lane.
#pragma once

#include <cstdint>

#include "solver/simd/lanes.h"
#include "solver/simd/minors.h"

namespace lcp::solver::LCP_ISA {

// A claim must be this near to round-off, beside the row's own terms, to be made here.
template <class T>
inline constexpr T kNearRoundOff = sizeof(T) == 8 ? T(1e-13) : T(4e-6);

// Where the largest q is smaller, though not 0, sums might underflow.
template <class T>
inline constexpr T kSmallestScale = sizeof(T) == 8 ? T(1e-280) : T(1e-30F);

// What the complementary bases of one M have in common for all q.
template <int N, class T>
struct Bases {
  using V = Lanes<T>;
  static constexpr unsigned kAll = (1U << N) - 1;

  V M[N * N], magnitude[N * N];  // M_ij, |M_ij|
  Minors<N, V> minors;
  V size[kAll + 1];  // |det M_aa|; NaN where that is round-off of its terms: such a basis proposes nothing

  LCP_INLINE void set() {
    constexpr T round_off = 16 * std::numeric_limits<T>::epsilon();
    for (int k = 0; k < N * N; ++k) magnitude[k] = stdx::abs(M[k]);
    minors.set(M);
    unroll<kAll>([&](auto k) LCP_INLINE {
      constexpr unsigned a = k + 1;
      if constexpr (a != kAll) {  // the last basis hides no other one
        V bound = 0;
        if constexpr ((a & (a - 1)) != 0) {
          bound = round_off;
          unroll<N>([&](auto i) LCP_INLINE {
            if constexpr (contains(a, i)) bound *= magnitude[i * N + i];
          });
        }
        size[a] = stdx::abs(minors.template at<a, a>());
        stdx::where(!(size[a] > bound), size[a]) = std::numeric_limits<T>::quiet_NaN();
      }
    });
  }
};

// z of the first basis a, counted in binary, whose z_a and w_b have the right signs by Cramer's rule, w_b up to
// round-off; NaN where there is none.
//   z_j = -det [M_aa with column j replaced by q_a] / det M_aa,   w_i = det [M_aa q_a; M_ia q_i] / det M_aa.
template <int N, class T>
LCP_INLINE inline void enumerate(const Bases<N, T>& bases, const Lanes<T>* q, Lanes<T> largest_q, Lanes<T>* z) {
  using V = Lanes<T>;
  constexpr unsigned all = Bases<N, T>::kAll;
  const V zero = 0;
  const V slack = 64 * std::numeric_limits<T>::epsilon() * largest_q;
  V least_q = q[0];
  for (int i = 1; i < N; ++i) least_q = stdx::min(least_q, q[i]);
  Mask<V> open = least_q < zero;
  V determinant = 1;
  for (int i = 0; i < N; ++i) z[i] = zero;
  unroll<all>([&](auto k) LCP_INLINE {
    constexpr unsigned a = k + 1;
    const V det = bases.minors.template at<a, a>();
    V numerator[N];
    V least_z, least_w;
    unroll<N>([&](auto i) LCP_INLINE {
      constexpr unsigned bit = 1U << i;
      if constexpr (contains(a, i)) {
        numerator[i] = bases.minors.template with<a, a & ~bit, !odd_after(a, i)>(q);
        const V signed_z = flip(numerator[i], det);
        least_z = i == std::countr_zero(a) ? signed_z : stdx::min(signed_z, least_z);
      } else {
        const V signed_w = flip(bases.minors.template with<a | bit, a, odd_after(a, i)>(q), det);
        least_w = i == std::countr_one(a) ? signed_w : stdx::min(signed_w, least_w);
      }
    });
    Mask<V> found = least_z >= zero && open;
    if constexpr (a != all) found = found && multiply_add(slack, bases.size[a], least_w) >= zero;
    unroll<N>([&](auto i) LCP_INLINE {
      if constexpr (contains(a, i)) stdx::where(found, z[i]) = numerator[i];
    });
    stdx::where(found, determinant) = det;
    open = open && !found;
  });
  const V inverse = T(1) / determinant;
  for (int i = 0; i < N; ++i) z[i] = stdx::abs(z[i] * inverse);
  stdx::where(open, z[0]) = std::numeric_limits<T>::quiet_NaN();
}

// Fills w; true where z is a solution by the rules of verify.h, though nothing but its own rounding errors, which are
// bounded here, made it miss.
template <int N, class T>
LCP_INLINE inline Mask<Lanes<T>> verify(const Lanes<T>* M, const Lanes<T>* magnitude, const Lanes<T>* q,
                                        Lanes<T> largest_q, T tolerance, const Lanes<T>* z, Lanes<T>* w) {
  using V = Lanes<T>;
  const V zero = 0;
  const V most = kNearRoundOff<T> * largest_q;
  const V least = T(1e-6) * most;
  V largest_row = 0;
  Mask<V> solved = largest_q <= std::numeric_limits<T>::max() && (largest_q >= kSmallestScale<T> || largest_q == zero);
  for (int i = 0; i < N; ++i) {
    V sum = q[i];
    V terms = stdx::abs(q[i]);
    for (int j = 0; j < N; ++j) {
      sum = multiply_add(M[i * N + j], z[j], sum);
      terms = multiply_add(magnitude[i * N + j], z[j], terms);
    }
    V basic = zero;
    stdx::where(z[i] > zero, basic) = sum;
    const V round_off = (N + 1) * std::numeric_limits<T>::epsilon() * terms;
    const V allowed = stdx::max(stdx::min(most, stdx::max(least, kNearRoundOff<T> * terms)), round_off);
    solved = solved && -sum <= allowed && basic <= allowed;  // false where sum is NaN
    largest_row = stdx::max(largest_row, terms);
    w[i] = stdx::max(zero, sum - basic);
  }
  const T rounding = 2 * (N + 1) * std::numeric_limits<T>::epsilon() / tolerance;
  return solved && largest_row * rounding <= largest_q;
}

}  // namespace lcp::solver::LCP_ISA
