// All complementary bases of problems that are too large for the minors of enumerate.h, one problem in each lane.
#pragma once

#include "batch/enumerate.h"
#include "simd/lanes.h"

namespace lcp::batch::LCP_ISA {

using namespace simd::LCP_ISA;

// Finds the first basis, in the order of a depth-first walk, that solves the problem with a perturbed q, so that no
// sign depends on round-off. From basis a the walk goes on to a + p for each p beyond the last index of a. It takes a
// principal pivot of the columns that are still to come:
//   w_b = S_bq + S_bj z_j,   z_a = S_aq + S_aj z_j,   j > max a.
// Bases that contain a singular one that the walk meets are not reached.
template <int N, Start start>
class Walk {
  using V = Lanes<double>;

 public:
  LCP_INLINE Walk(const V* M, const V* q, V largest_q, const V* guess) : M_(M), q_(q) {
    if constexpr (start == Start::kGuess) {
      for (int i = 0; i < N; ++i) active_[i] = negative_where_positive(guess[i]);
    }
    const V perturbation = 64 * std::numeric_limits<double>::epsilon() * largest_q;
    Tableau root;
    none_ = q[0];
    for (int i = 0; i < N; ++i) {
      for (int j = 0; j < N; ++j) root.S[i][j] = M[i * N + j];
      root.S[i][N] = multiply_add(V(1 + i * (1.0 / N)), perturbation, q[i]);
      none_ = either(none_, q[i]);
    }
    proposes_ = none_;
    go_on<0, 0>(root, V(0));
    if constexpr (start == Start::kGuess) none_ = either(none_, singular_);
  }

  // Fills z of the basis that was found, for q without the perturbation. z is NaN where there is none, or where the
  // guess proposes a basis that the walk found singular.
  LCP_INLINE void solve(V* z) const {
    V in_basis[N], A[N][N];
    for (int i = 0; i < N; ++i) in_basis[i] = bit(basis_, i);
    for (int i = 0; i < N; ++i) {
      for (int j = 0; j < N; ++j) {
        A[i][j] = i == j ? choose_if_negative(in_basis[i], M_[i * N + i], V(1))
                         : choose_if_negative(both(in_basis[i], in_basis[j]), M_[i * N + j], V(0));
      }
      z[i] = choose_if_negative(in_basis[i], -q_[i], V(0));
    }
    // The rows are eliminated in the order of the walk's pivots.
    unroll<N>([&](auto c) LCP_INLINE_LAMBDA {
      A[c][c] = 1.0 / A[c][c];
      for (int i = c + 1; i < N; ++i) {
        const V factor = A[i][c] * A[c][c];
        for (int j = c + 1; j < N; ++j) A[i][j] = subtract_product(factor, A[c][j], A[i][j]);
        z[i] = subtract_product(factor, z[c], z[i]);
      }
    });
    V largest_z = 0;
    unroll<N>([&](auto k) LCP_INLINE_LAMBDA {
      constexpr int i = N - 1 - k;
      for (int j = i + 1; j < N; ++j) z[i] = subtract_product(A[i][j], z[j], z[i]);
      z[i] *= A[i][i];
      largest_z = stdx::max(largest_z, z[i]);
    });
    // A basic variable that is 0 at a degenerate vertex comes out as round-off. In a row with q_i = 0 there may be
    // nothing else, and such a row would not pass verification. If a true value is taken for 0, verification fails.
    const V negligible = 8 * std::numeric_limits<double>::epsilon() * largest_z;
    for (int i = 0; i < N; ++i) stdx::where(z[i] <= negligible, z[i]) = 0;
    z[0] = choose_if_negative(none_, V(std::numeric_limits<double>::quiet_NaN()), z[0]);
  }

 private:
  struct Tableau {
    V S[N][N + 1];  // q is the last column
  };

  // Negative, by its sign bit, where the set of bits has i.
  LCP_INLINE static V bit(V set, int i) { return SignBits<V>::from(SignBits<V>::of(set) << (63 - i)); }
  template <unsigned a>
  LCP_INLINE static V broadcast_set() {
    return SignBits<V>::from(typename SignBits<V>::Bits{} + std::int64_t{a});
  }

  template <unsigned a, int first>
  LCP_INLINE void go_on(const Tableau& tableau, V singular) {
    unroll<N - first>([&](auto k) LCP_INLINE_LAMBDA { visit<(a | 1U << (first + k)), first + k>(tableau, singular); });
  }

  // Visits basis a, whose last index is p. singular: negative where a basis on the way to it is singular.
  template <unsigned a, int p>
  LCP_INLINE void visit(const Tableau& before, V singular) {
    constexpr double round_off = 16 * std::numeric_limits<double>::epsilon();
    const V pivot = before.S[p][p];
    const V bound = multiply_add(V(round_off), stdx::abs(M_[p * N + p]), V(std::numeric_limits<double>::min()));
    singular = either(singular, stdx::abs(pivot) - bound);
    const V inverse = -1.0 / pivot;
    Tableau after;
    unroll<N - p>([&](auto k) LCP_INLINE_LAMBDA {
      constexpr int j = p + 1 + k;
      after.S[p][j] = before.S[p][j] * inverse;
      unroll<N>([&](auto i) LCP_INLINE_LAMBDA {
        if constexpr (i != p) after.S[i][j] = multiply_add(before.S[i][p], after.S[p][j], before.S[i][j]);
      });
    });
    test_basis<a>(after, singular);
    if constexpr (p + 1 < N) go_on<a, p + 1>(after, singular);
  }

  template <unsigned a>
  LCP_INLINE void test_basis(const Tableau& tableau, V singular) {
    V wrong = singular;
    for (int i = 0; i < N; ++i) wrong = either(wrong, tableau.S[i][N]);
    V take = none_;
    if constexpr (start == Start::kGuess) {
      V proposed = proposes_;
      unroll<N>([&](auto i) LCP_INLINE_LAMBDA {
        proposed = contains(a, i) ? both(proposed, active_[i]) : but_not(proposed, active_[i]);
      });
      take = either(take, proposed);
      singular_ = either(singular_, both(proposed, singular));
    }
    basis_ = choose_if_negative(but_not(take, wrong), broadcast_set<a>(), basis_);
    none_ = both(none_, wrong);
  }

  const V *M_, *q_;
  V basis_ = 0.0;     // a set of bits
  V none_;            // negative where no basis has been found yet
  V active_[N];       // negative where the guess is positive
  V proposes_;        // negative where the guess counts, since the empty basis is no solution
  V singular_ = 0.0;  // negative where the guess proposes a singular basis
};

// The walk from the empty basis on. Not inlined, so that the types of numbers in memory share this long piece of code.
template <int N, Start start>
LCP_NOINLINE void walk(const Lanes<double>* M, const Lanes<double>* q, Lanes<double> largest_q,
                       const Lanes<double>* guess, Lanes<double>* z) {
  Walk<N, start>(M, q, largest_q, guess).solve(z);
}

}  // namespace lcp::batch::LCP_ISA
