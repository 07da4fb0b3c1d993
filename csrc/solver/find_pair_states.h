// The complementary basis of a solution: which member of each pair (z_i, w_i) is 0, and where both are.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <utility>

#include "simd/inline.h"

namespace lcp::solver {

/// State of a pair at a solution. These numbers are the entries of the tensor `basis` that lcp::_solve_with_basis
/// returns and every derivative of the solution takes.
enum PairState : std::int8_t {
  kUnsolved = -1,  ///< the state of all pairs of an element without a solution
  kNonbasic = 0,   ///< z_i = 0 < w_i
  kBasic = 1,      ///< w_i = 0 < z_i, or w_i = 0 is an equation and z_i of any sign
  kTied = 2,       ///< z_i = w_i = 0: a degenerate pair, also called weakly active
  kDoubtful = 3,   ///< written by vector kernels only: PairStates is to decide all pairs of the element
};

/// A term of the rows of w = M z + q counts as round-off up to this multiple of the epsilon of the data, relative to
/// the size of its row. Entries of contact problems carry errors of some epsilon: from their rounding in float, or from
/// the products J A^-1 J' in double.
inline constexpr double kRoundOffInEpsilon = 64;

/// A size beyond round-off, but by less than this factor, is doubtful: it may be the error of a z that was not solved
/// to full precision. Such errors happen where rows or columns have units of very different size.
constexpr double doubtful_factor(double epsilon) { return epsilon < 1e-10 ? 0x1p24 : 0x1p4; }
constexpr double doubtful_size(double epsilon) { return doubtful_factor(epsilon) * kRoundOffInEpsilon * epsilon; }

/// The arithmetic of one problem, for find_pair_states.
struct ScalarArithmetic {
  using Element = double;
  using Number = double;
  using Flag = unsigned char;
  static double abs(double x) { return std::abs(x); }
  static double max(double x, double y) { return x < y ? y : x; }
  static double multiply_subtract(double x, double y, double z) { return x * y - z; }
  static double select(bool flag, double x, double y) { return flag ? x : y; }
  static bool any(bool flag) { return flag; }
};

/// Calls f(0), ..., f(n - 1); for an integral constant n without a loop, so that arrays of n live in registers.
template <class Function>
LCP_INLINE inline void for_each_index(int n, const Function& f) {
  for (int i = 0; i < n; ++i) f(i);
}
template <int n, class Function>
LCP_INLINE inline void for_each_index(std::integral_constant<int, n>, const Function& f) {
  [&]<int... i>(std::integer_sequence<int, i...>) LCP_INLINE_LAMBDA { (f(i), ...); }
  (std::make_integer_sequence<int, n>{});
}

/// The excess of |M_ij z_j| over `size`, or a negative number.
template <class Arithmetic>
LCP_INLINE inline typename Arithmetic::Number excess_of(const typename Arithmetic::Number& entry,
                                                        const typename Arithmetic::Number& z,
                                                        const typename Arithmetic::Number& size) {
  return Arithmetic::multiply_subtract(Arithmetic::abs(entry), Arithmetic::abs(z), size);
}

/// The memory that find_pair_states works in: n numbers and flags each, of which `tied` is a result.
template <class Arithmetic>
struct PairWorkspace {
  using Number = typename Arithmetic::Number;
  using Flag = typename Arithmetic::Flag;
  Number* limit;             ///< the size below which a term of row i is round-off; infinite where q_i = 0
  Number* excess;            ///< the excess of the largest term of variable j over the sizes looked for, or 0
  Flag *basic, *negligible;  ///< whether variable j is basic, or counts as 0
  Flag* tied;                ///< whether w_i of row i is round-off
};

/// The second half of find_pair_states, for some z_j != 0 whose excess[j] is not positive; few problems need it. A z_j
/// without a term beyond round-off in the rows with q_i != 0 counts as 0, unless it has no term at all in these rows,
/// or one beyond round-off in a row with q_i = 0. A w_i that is positive only by variables that count as 0 is 0 as
/// well. Where seeks_doubt, `excess` is the excess over doubtful sizes, and the result says whether a size is doubtful.
template <class Arithmetic, bool seeks_doubt, class Size, class Variables, class Matrix, class Vector,
          class VectorOfVariables>
LCP_NOINLINE typename Arithmetic::Flag find_small_pairs(Size n, Variables variables,
                                                        const typename Arithmetic::Number& round_off,
                                                        const typename Arithmetic::Number& factor, const Matrix& M,
                                                        const VectorOfVariables& z, const Vector& w,
                                                        const Vector& scale,
                                                        const PairWorkspace<Arithmetic>& workspace) {
  using Number = typename Arithmetic::Number;
  using Flag = typename Arithmetic::Flag;
  const Number zero = 0;
  const Number infinity = std::numeric_limits<typename Arithmetic::Element>::infinity();
  Number* const limit = workspace.limit;
  Flag* const basic = workspace.basic;
  Flag* const negligible = workspace.negligible;
  Flag doubtful(false), some(false);
  for_each_index(variables, [&](int j) LCP_INLINE_LAMBDA {
    negligible[j] = Flag(false);
    if (!Arithmetic::any(z(j) != zero && !basic[j])) return;
    if constexpr (seeks_doubt) {
      Number excess = zero;
      for_each_index(n, [&](int i) LCP_INLINE_LAMBDA {
        excess = Arithmetic::max(excess, excess_of<Arithmetic>(M(i, j), z(j), limit[i]));
      });
      doubtful = doubtful || (excess > zero && !basic[j]);
      basic[j] = excess > zero;
    }
    Flag seen(false);
    for_each_index(n, [&](int i) LCP_INLINE_LAMBDA {
      seen = seen || (limit[i] < infinity && Arithmetic::abs(M(i, j) * z(j)) > zero);
    });
    negligible[j] = z(j) > zero && seen && !basic[j];
    basic[j] = z(j) > zero && !negligible[j];
    some = some || negligible[j];
  });
  if (!Arithmetic::any(some)) return doubtful;
  Number* const least = workspace.excess;  // the least term of row i that is beyond round-off, where q_i = 0
  for_each_index(n, [&](int i) LCP_INLINE_LAMBDA {
    least[i] = infinity;
    if (!Arithmetic::any(!(limit[i] < infinity))) return;
    Number rest = zero;
    for_each_index(variables, [&](int j) LCP_INLINE_LAMBDA {
      rest += Arithmetic::select(negligible[j], zero, Arithmetic::abs(M(i, j) * z(j)));
    });
    least[i] = Arithmetic::select(!(limit[i] < infinity) && rest > zero, round_off * rest, infinity);
  });
  Number* const zeros = limit;  // the sums, for each row, of the terms that count as 0
  for_each_index(n, [&](int i) LCP_INLINE_LAMBDA { zeros[i] = zero; });
  for_each_index(variables, [&](int j) LCP_INLINE_LAMBDA {
    if (!Arithmetic::any(negligible[j])) return;
    for_each_index(n, [&](int i) LCP_INLINE_LAMBDA {
      const Number term = Arithmetic::abs(M(i, j) * z(j));
      const Flag balances = term > least[i];
      if constexpr (seeks_doubt) doubtful = doubtful || (balances && !basic[j] && term <= factor * least[i]);
      basic[j] = basic[j] || balances;
    });
    for_each_index(n, [&](int i) LCP_INLINE_LAMBDA {
      zeros[i] += Arithmetic::select(basic[j], zero, Arithmetic::abs(M(i, j) * z(j)));
    });
  });
  for_each_index(n, [&](int i) LCP_INLINE_LAMBDA {
    workspace.tied[i] = workspace.tied[i] || w(i) - zeros[i] <= round_off * scale(i);
  });
  return doubtful;
}

/// Finds the state of each pair from a solution (z, w); no threshold elsewhere decides it. A threshold is needed, since
/// an algorithm that ends at a degenerate vertex returns round-off for a basic variable that is 0. Let s_i = |q_i| +
/// sum_k |M_ik z_k|. Then z_j counts as 0 if both of these hold:
///   - |M_ij| z_j <= 64 epsilon s_i in every row with q_i != 0 that has z_j, of which there is at least one;
///   - in each row with q_i = 0, its term is as small beside the terms of the other variables.
/// A pair whose z_i is 0 is tied where w_i <= 64 epsilon s_i. The units of rows and columns do not matter. (A q_i
/// within the rounding error of its row, |q_i| <= 64 epsilon (w_i + s_i), counts as 0.)
///
/// One template for one problem and for vectors that hold one problem in each lane; Arithmetic tells them apart.
///   n, variables: int, or integral constants. A z_j that is 0 need not be among the variables.
///   M(i, j), q(i), z(j), w(i): the problem; i < n, j < variables. scale(i): s_i.
/// Calls emit(j, basic) for each variable, and sets workspace.tied. Where seeks_doubt, returns whether some size is
/// beyond round-off by less than doubtful_factor().
template <class Arithmetic, bool seeks_doubt, class Size, class Variables, class Matrix, class Vector,
          class VectorOfVariables, class Emit>
LCP_INLINE inline typename Arithmetic::Flag find_pair_states(
    Size n, Variables variables, double epsilon, const Matrix& M, const Vector& q, const VectorOfVariables& z,
    const Vector& w, const Vector& scale, const PairWorkspace<Arithmetic>& workspace, const Emit& emit) {
  using Element = typename Arithmetic::Element;
  using Number = typename Arithmetic::Number;
  using Flag = typename Arithmetic::Flag;
  const Number round_off = static_cast<Element>(kRoundOffInEpsilon * epsilon);
  const Number zero = 0;
  const Number infinity = std::numeric_limits<Element>::infinity();
  Number* const limit = workspace.limit;
  Number* const excess = workspace.excess;
  Flag* const basic = workspace.basic;
  Flag* const tied = workspace.tied;
  const Number factor = static_cast<Element>(doubtful_factor(epsilon));
  Flag doubtful(false);
  for_each_index(variables, [&](int j) LCP_INLINE_LAMBDA { excess[j] = zero; });
  for_each_index(n, [&](int i) LCP_INLINE_LAMBDA {
    const Number error = round_off * scale(i);
    tied[i] = w(i) <= error;
    limit[i] = Arithmetic::select(Arithmetic::abs(q(i)) > round_off * w(i) + error, error, infinity);
    if constexpr (seeks_doubt) doubtful = doubtful || (!tied[i] && w(i) <= factor * error);
    const Number size = seeks_doubt ? factor * limit[i] : limit[i];
    for_each_index(variables, [&](int j) LCP_INLINE_LAMBDA {
      excess[j] = Arithmetic::max(excess[j], excess_of<Arithmetic>(M(i, j), z(j), size));
    });
  });
  Flag small(false);
  for_each_index(variables, [&](int j) LCP_INLINE_LAMBDA {
    basic[j] = excess[j] > zero;
    small = small || (z(j) != zero && !basic[j]);
  });
  if (Arithmetic::any(small)) {
    doubtful = find_small_pairs<Arithmetic, seeks_doubt>(n, variables, round_off, factor, M, z, w, scale, workspace) ||
               doubtful;
  }
  for_each_index(variables, [&](int j) LCP_INLINE_LAMBDA { emit(j, basic[j] && z(j) > zero); });
  return doubtful;
}

}  // namespace lcp::solver
