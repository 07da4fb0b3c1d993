// J' of solver/active_set.h for small problems, one in each lane: the whole system of order n in registers, with a row
// of the identity for each inactive pair.
#pragma once

#include "batch/states.h"
#include "simd/lanes.h"

namespace lcp::batch::LCP_ISA {

using namespace simd::LCP_ISA;

// The largest product of |M_aa| and an estimate of |U^-1| up to which M_aa is clearly regular. The estimate shows the
// rank less clearly than the full pivoting of linalg/basis.h. The bound therefore leaves a margin to the pivots that
// solver/active_set.cpp takes for singular.
template <class T>
inline constexpr double kClearCondition = sizeof(T) == sizeof(double) ? 1e6 : 1e3;

// Solves A x = b in place by elimination with row pivoting. Returns an estimate of |U^-1| in the columns with
// counts[c]: the largest |y_c| where U'y = d and each d_c = -1 or 1 makes it the larger [Cline, Moler, Stewart,
// Wilkinson, 1979]. The pivots alone do not show |U^-1|, least of all in a triangular matrix.
template <int N, class V>
LCP_INLINE inline V solve_lanes(V (&A)[N][N], V* b, const Mask<V> (&counts)[N]) {
  V growth = 0;
  V grown[N];
  unroll<N>([&](auto c) LCP_INLINE_LAMBDA {
    for (int r = c + 1; r < N; ++r) {
      const Mask<V> larger = stdx::abs(A[r][c]) > stdx::abs(A[c][c]);
      const auto exchange = [&larger](V& x, V& y) LCP_INLINE_LAMBDA {
        const V kept = x;
        stdx::where(larger, x) = y;
        stdx::where(larger, y) = kept;
      };
      for (int j = c; j < N; ++j) exchange(A[c][j], A[r][j]);
      exchange(b[c], b[r]);
    }
    const V inverse = Element<V>(1) / A[c][c];
    V sum = 0;
    for (int r = 0; r < c; ++r) sum = multiply_add(A[r][c], grown[r], sum);
    grown[c] = -(sum + stdx::copysign(V(1), sum)) * inverse;
    stdx::where(counts[c], growth) = stdx::max(growth, stdx::abs(grown[c]));
    for (int r = c + 1; r < N; ++r) {
      const V factor = A[r][c] * inverse;
      for (int j = c + 1; j < N; ++j) A[r][j] = subtract_product(factor, A[c][j], A[r][j]);
      b[r] = subtract_product(factor, b[c], b[r]);
    }
    A[c][c] = inverse;
  });
  unroll<N>([&](auto k) LCP_INLINE_LAMBDA {
    constexpr int c = N - 1 - k;
    for (int j = c + 1; j < N; ++j) b[c] = subtract_product(A[c][j], b[j], b[c]);
    b[c] = b[c] * A[c][c];
  });
  return growth;
}

// t = J' (g_z, g_w). Returns true in the lanes where nothing overflows and M_aa is clearly regular or its right-hand
// side is 0. The other lanes need the pseudo-inverse of linalg/basis.h and are left to solver::ActiveSet.
//   T: the type of the data.
template <int N, class T>
LCP_INLINE inline Mask<Lanes<double>> adjoint(const Lanes<double>* M, const Lanes<double>* states,
                                              const Lanes<double>* g_z, const Lanes<double>* g_w, bool tied_active,
                                              Lanes<double>* t) {
  using V = Lanes<double>;
  const V zero = 0;
  Mask<V> active[N];
  for (int j = 0; j < N; ++j) active[j] = is_active(states[j], tied_active);
  Mask<V> clear = states[0] >= zero;

  // M_aa' t_a = -(g_z,a + M_ba' g_w,b) and t_b = g_w,b as one system.
  V A[N][N];
  V largest = zero;
  Mask<V> nothing = clear;  // where M_aa' t_a = 0
  for (int i = 0; i < N; ++i) {
    V sum = -g_z[i];
    for (int j = 0; j < N; ++j) {
      V inactive_g = g_w[j];
      stdx::where(active[j], inactive_g) = zero;
      sum = subtract_product(M[j * N + i], inactive_g, sum);
      A[i][j] = i == j ? V(1) : zero;
      const Mask<V> basic = active[i] && active[j];
      stdx::where(basic, A[i][j]) = M[j * N + i];
      stdx::where(basic, largest) = stdx::max(largest, stdx::abs(A[i][j]));
    }
    t[i] = g_w[i];
    stdx::where(active[i], t[i]) = sum;
    nothing = nothing && (!active[i] || sum == zero);
  }
  const V growth = solve_lanes<N>(A, t, active);
  for (int i = 0; i < N; ++i) {
    stdx::where(nothing, t[i]) = g_w[i];
    stdx::where(nothing && active[i], t[i]) = zero;
  }
  clear = nothing || (clear && growth * largest < V(kClearCondition<T>));
  for (int i = 0; i < N; ++i) clear = clear && stdx::abs(t[i]) <= V(std::numeric_limits<double>::max());
  return clear;
}

}  // namespace lcp::batch::LCP_ISA
