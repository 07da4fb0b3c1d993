// All complementary bases of a small problem at once, without a branch, one problem in each lane.
//
// Bases are enumerated in three ways, since the cheapest way changes with n; a test compares their solutions:
//   - up to n = 4, here: by minors that all bases share;
//   - for n = 5 and 6, in walk.h: by principal pivots that a basis shares with those that contain it;
//   - in solver/enumeration.h: one basis after another, including the singular bases that the other two leave. Only
//     this way may show that there is no solution.
#pragma once

#include "batch/minors.h"
#include "simd/lanes.h"

namespace lcp::batch::LCP_ISA {

using namespace simd::LCP_ISA;

// The numbers that the complementary bases of one M share for all q.
template <int N, class T>
struct Bases {
  using V = Lanes<T>;
  static constexpr unsigned kAll = (1U << N) - 1;

  V M[N * N], magnitude[N * N];  // M_ij, |M_ij|
  Minors<N, V> minors;
  // For each basis a, det M_aa less a bound on the rounding errors of its terms. It is negative, by its sign bit, where
  // the basis may be singular.
  V margin[kAll + 1];

  LCP_INLINE void set() {
    constexpr T round_off = 16 * std::numeric_limits<T>::epsilon();
    for (int k = 0; k < N * N; ++k) magnitude[k] = stdx::abs(M[k]);
    minors.set(M);
    unroll<kAll>([&](auto k) LCP_INLINE_LAMBDA {
      constexpr unsigned a = k + 1;
      V bound = std::numeric_limits<T>::min();
      if constexpr ((a & (a - 1)) != 0) {
        V terms = round_off;
        unroll<N>([&](auto i) LCP_INLINE_LAMBDA {
          if constexpr (contains(a, i)) terms *= magnitude[i * N + i];
        });
        bound += terms;
      }
      margin[a] = stdx::abs(minors.template at<a, a>()) - bound;
    });
  }

  unsigned singular = 0;  // the set of bases that may be singular for the first lane's M, one bit each

  // Whether no regular basis of the first lane's M has a negative determinant, as is so for P-matrices, semidefinite
  // matrices and most contact problems; fills `singular`.
  LCP_INLINE bool is_p0() {
    bool has_negative = false;
    unroll<kAll>([&](auto k) LCP_INLINE_LAMBDA {
      constexpr unsigned a = k + 1;
      if (a != kAll && margin[a][0] < 0) {
        singular |= 1U << a;
      } else {
        has_negative = has_negative || minors.template at<a, a>()[0] < 0;
      }
    });
    return !has_negative;
  }
};

// -1 where x > 0, else 0; a NaN is not positive.
template <class V>
LCP_INLINE inline V negative_where_positive(const V& x) {
  V result = 0;
  stdx::where(x > V(0), result) = -1;
  return result;
}

// The basis that is tried first: the empty one, and with a guess after it the basis of the guess's positive entries.
enum class Start { kNothing, kGuess };

// z of the first regular basis a, counted in binary, whose z_a and w_b have the right signs, w_b up to round-off. It is
// NaN where there is none, or where the guess proposes a singular basis, whose solution depends on more than the
// guess's signs. With D(a, i) = det [M_aa q_a; M_ia q_i] for i outside a, Cramer's rule gives
//   w_i = D(a, i) / det M_aa   and   z_i = -D(a - i, i) / det M_aa,
// so that each number serves two bases, which never disagree on the sign of a nearly degenerate variable.
//   are_for_all: whether the bases are those of one M that all lanes have, and is_p0() holds.
template <int N, class T, Start start, bool are_for_all>
LCP_INLINE inline void enumerate(const Bases<N, T>& bases, const Lanes<T>* q, Lanes<T> largest_q, const Lanes<T>* guess,
                                 Lanes<T>* z) {
  using V = Lanes<T>;
  constexpr unsigned all = Bases<N, T>::kAll;
  const V slack = 64 * std::numeric_limits<T>::epsilon() * largest_q;
  V numerator[all][N];
  unroll<all>([&](auto a) LCP_INLINE_LAMBDA {
    unroll<N>([&](auto i) LCP_INLINE_LAMBDA {
      constexpr unsigned with_i = a | 1U << i;
      if constexpr (a != with_i) numerator[a][i] = bases.minors.template with<with_i, a, odd_after(a, i)>(q);
    });
  });
  V none = q[0];  // negative, by its sign bit, where no basis has been found yet
  for (int i = 1; i < N; ++i) none = either(none, q[i]);
  [[maybe_unused]] const V proposes = none;  // negative where the guess counts, since the empty basis is no solution
  [[maybe_unused]] V singular = 0;           // negative where the guess proposes a singular basis
  [[maybe_unused]] V active[N];              // negative where the guess is positive
  if constexpr (start == Start::kGuess) {
    for (int i = 0; i < N; ++i) active[i] = negative_where_positive(guess[i]);
  }
  V determinant = 1;
  for (int i = 0; i < N; ++i) z[i] = 0;
  unroll<all>([&](auto k) LCP_INLINE_LAMBDA {
    constexpr unsigned a = k + 1;
    if (are_for_all && (bases.singular >> a & 1) != 0) return;
    const V det = bases.minors.template at<a, a>();
    V wrong = are_for_all || a == all ? V(0) : bases.margin[a];  // after the last basis none is left to be missed
    unroll<N>([&](auto i) LCP_INLINE_LAMBDA {
      if constexpr (are_for_all) {
        wrong = contains(a, i) ? either_not(wrong, numerator[a & ~(1U << i)][i])
                               : either(wrong, multiply_add(slack, det, numerator[a][i]));
      } else if constexpr (contains(a, i)) {
        wrong = either_equal(wrong, numerator[a & ~(1U << i)][i], det);
      } else {
        wrong = either_differ(wrong, multiply_add(slack, det, numerator[a][i]), det);
      }
    });
    V take = none;
    if constexpr (start == Start::kGuess) {
      V proposed = proposes;
      unroll<N>([&](auto i) LCP_INLINE_LAMBDA {
        proposed = contains(a, i) ? both(proposed, active[i]) : but_not(proposed, active[i]);
      });
      take = either(take, proposed);
      singular = either(singular, both(proposed, bases.margin[a]));
    }
    take = but_not(take, wrong);
    unroll<N>([&](auto i) LCP_INLINE_LAMBDA {
      if constexpr (contains(a, i)) {
        z[i] = choose_if_negative(take, numerator[a & ~(1U << i)][i], z[i]);
      } else if constexpr (start == Start::kGuess) {
        z[i] = choose_if_negative(take, V(0), z[i]);
      }
    });
    determinant = choose_if_negative(take, det, determinant);
    none = both(none, wrong);
  });
  const V inverse = T(1) / determinant;
  for (int i = 0; i < N; ++i) z[i] = stdx::abs(z[i] * inverse);
  if constexpr (start == Start::kGuess) none = either(none, singular);
  z[0] = choose_if_negative(none, V(std::numeric_limits<T>::quiet_NaN()), z[0]);
}

}  // namespace lcp::batch::LCP_ISA
