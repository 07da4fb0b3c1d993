// The rule by which a z counts as a solution.
#pragma once

#include <cmath>

#include "linalg/kernels.h"
#include "solver/kernels.h"

namespace lcp::solver {

/// The tolerance where the caller names none; single_precision: whether M, q and z are floats.
constexpr double default_tolerance(bool single_precision) { return single_precision ? 1e-4 : 1e-9; }

/// q + row . z as if in twice the precision [Ogita, Rump, Oishi, Accurate sum and dot product, 2005, alg. 5.3].
double accurate_sum(int n, const double* row, const double* z, double q);

/// The scale s_i of a row, see violation(); terms: |q_i| + sum_j |M_ij z_j|.
double scale_of_row(double terms, double largest_q);

/// Fills w = M z + q and returns the largest violation in units of the allowed one, so that <= 1 means solved:
///
///   max_i e_i / (tolerance s_i),   e_i = |w_i| where z_i > 0, else |min(z_i, w_i)|,
///   s_i = min(|q|_inf, max(|q_i| + sum_j |M_ij z_j|, 1e-4 |q|_inf)).
///
/// The scales s_i of the rows make the rule strict also for a small row beside a large one. |q|_inf caps them: a nearly
/// singular basis gives a huge z whose rounding errors must not pass for a solution. So the natural residual of an
/// accepted z is at most tolerance * |q|_inf, and w_i = 0 is within this bound of (M z + q)_i where z_i > 0.
///
/// Rows whose rounding errors could decide are summed in twice the precision. The result is infinity if z has a NaN, or
/// is so huge that twice the precision is not enough. The first num_equations rows are equations with unknowns of any
/// sign, for which e_i = |w_i|.
///   M: n x n row-major, z, q, w: n.
/// terms: n, or nullptr; becomes |q_i| + sum_j |M_ij z_j|.
/// rows_hold: nullptr, or becomes whether every e_i is at most kSmallRowResidual of these terms.
double violation(int n, int num_equations, const double* M, const double* q, const double* z, double tolerance,
                 double* w, double* terms = nullptr, bool* rows_hold = nullptr);

/// The violation for an M whose spans are known.
double violation(const linalg::Rows& M, int num_equations, const double* q, const double* z, double tolerance,
                 double* w, double* terms = nullptr, bool* rows_hold = nullptr);

/// |w_i| where z_i > 0, else |min(z_i, w_i)|.
inline double row_error(double z, double w) {
  const double least = z < w ? z : w;
  return std::abs(z > 0 ? w : least);
}

/// The error of the rows, each in its own units 2^r_i, for the w and terms of violation(): max_i e_i / s_i with the
/// scales s_i = min(|q|_inf, max(|q_i| + sum_j |M_ij z_j|, 1e-4 2^r_i max_k 2^-r_k |q_k|)). It is 0 where it is at most
/// kSmallRowResidual.
double row_residual(int n, const double* q, const double* z, const double* w, const double* terms, const int* r);

/// The w that belongs to a solution z: 0 where z_i > 0, else max(0, (M z + q)_i); NaN where z is.
void complement(int n, const double* M, const double* q, const double* z, double* w);

}  // namespace lcp::solver
