// The vector kernels of Lemke's method and of the rule by which a z counts as a solution, compiled for each instruction
// set.
#pragma once

#include <cstdint>

#include "solver/termination.h"

namespace lcp::solver {

/// w = unit M z + d z0 + q. M: n x n row-major; unit: a power of two; q, the covering vector d >= 0, d_i > 0 where
/// q_i < 0, and the perturbation of q that breaks ties: n numbers each. min q < 0.
struct LemkeProblem {
  const double* M;
  double unit;
  const double *q, *cover, *perturbation;
};

/// The tableau of Lemke's method, see lemke.h. Variable i < n is w_i, variable n + i is z_i, and 2 n is the artificial
/// variable z0.
struct LemkeTableau {
  int n;
  int stride;         ///< distance between columns, in numbers: a multiple of 8, at least n
  double* columns;    ///< n + 1 nonbasic columns, then the perturbation, then q; zeros below row n. 64-byte aligned
  double* scratch;    ///< 2 * stride numbers, 64-byte aligned
  int* row_variable;  ///< n: the basic variable of each row
  int* complement_column;  ///< n: the column of the complement of each row's basic variable
  /// Out: the final pivot, which removed the artificial variable from the basis. It has been applied to the column q
  /// only; the other columns are as before that pivot.
  int last_row, last_column;
  std::int64_t pivots;  ///< out: number of pivots
};

/// A larger residual of a row, relative to its own terms, is more than the rounding errors of solving a basis.
inline constexpr double kSmallRowResidual = 1e-11;

/// The parameters of the rule by which violation() judges rows, see verify.h.
struct RowRule {
  double tolerance;
  double least_scale, largest_scale;
  double rounding;  ///< the rounding error of w_i, relative to |q_i| + sum_j |M_ij z_j|
};

struct RowErrors {
  double worst;   ///< max_i e_i / (tolerance s_i)
  bool in_doubt;  ///< whether the rounding of a w_i is more than a hundredth of what is allowed, or a number not finite
  bool hold;      ///< whether every e_i is at most kSmallRowResidual of the row's own terms
};

struct Kernels {
  /// Takes Lemke's pivots from the basis w = q on, until the artificial variable leaves the basis, nothing blocks the
  /// driving variable, or max_pivots are spent. On entry row i holds variable i, whose complement is in column i.
  Termination (*lemke)(LemkeTableau& tableau, const LemkeProblem& problem, double pivot_tolerance, double tie_tolerance,
                       std::int64_t max_pivots);
  /// The errors of `count` rows. terms: |q_i| + sum_j |M_ij z_j|.
  RowErrors (*row_errors)(int count, const double* z, const double* w, const double* terms, const RowRule& rule);
};

/// The kernels of the instruction set in use.
const Kernels& kernels();

}  // namespace lcp::solver
