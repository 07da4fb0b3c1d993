// The linear program that fits M and W of an LCP to known solutions.
//
//   [Notes] Pfrommer: LCP Notes, 2019 (unpublished; docs/systems.md), section 3.1.4.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace lcp::training {

/// minimise cost'x  subject to  constraints x >= bound,  lower <= x <= upper. All float64.
struct LinearProgram {
  at::Tensor cost;          ///< [p]
  at::Tensor constraints;   ///< [r, p]
  at::Tensor bound;         ///< [r]
  at::Tensor lower, upper;  ///< [p], infinite where there is none
};

/// Entries of [M|W] that are known beforehand.
struct KnownEntries {
  at::Tensor mask;    ///< [n, n + k], bool, which entries are known
  at::Tensor values;  ///< [n, n + k], their values
};

/// The program [Notes, 3.1.4] of M, [n, n], and W, [n, k], in w = M lambda + W d with 0 <= lambda perp w >= 0:
///
///   minimise sum_i lambda^i'(M lambda^i + W d^i)  subject to  M lambda^i + W d^i >= epsilon.
///
/// Its unknowns are x = (M, W), p = n (n + k), each row by row; the rows of its constraints, [samples n, p], are those
/// of (I x lambda^i', I x d^i') with the Kronecker product x, sample by sample. The bounds of a known entry equal its
/// value.
///
/// The objective is >= epsilon e'lambda summed over the samples, see lower_bound, with equality at the truth and at
/// M = 0, W d = epsilon e: epsilon > 0 does not exclude this trivial solution, but one known entry in each row does.
///   lambda: [samples, n], >= 0. d: [samples, k], with a column of ones for a bias.
/// Throws c10::Error where a shape or dtype does not fit or epsilon is negative.
LinearProgram complementarity_program(const at::Tensor& lambda, const at::Tensor& d, const KnownEntries& known,
                                      double epsilon = 0);

/// The part of a complementarity_program with row i of M and W alone, in the unknowns [M_i|W_i]; the rows share neither
/// a constraint nor a term of the cost.
LinearProgram row_program(const LinearProgram& program, std::int64_t n, std::int64_t i);

/// The program of 3 x 3 matrices M with these constraints in addition, which make M monotone, M + M' being diagonally
/// dominant:  M33 = 0,  M13 = -M31,  M23 = -M32,  M11 and M22 >= |M12 + M21| / 2.
LinearProgram monotone_program(const LinearProgram& program);

/// The unknowns of a complementarity_program, in another order: the row [M_i|W_i] first, then the others.
LinearProgram with_row_first(const LinearProgram& program, std::int64_t n, std::int64_t i);

/// The program with weight e's added to the cost. Its unknowns are (x, s) with -s <= x <= s, so that s = |x| at the
/// optimum.
LinearProgram with_l1(const LinearProgram& program, double weight);

/// A lower bound of the objective of each row's program, [n]: epsilon times the sum of its lambda.
at::Tensor lower_bound(const at::Tensor& lambda, double epsilon);

}  // namespace lcp::training
