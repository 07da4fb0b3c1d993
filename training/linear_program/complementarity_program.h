// The linear program that fits an LCP to known solutions of it.
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

/// What is known of the rows [M|W] beforehand.
struct KnownEntries {
  at::Tensor mask;    ///< [n, n + k], bool, which entries are known
  at::Tensor values;  ///< [n, n + k], their values
};

/// The program [Notes, 3.1.4] of M, [n, n], and W, [n, k], in w = M lambda + W d with 0 <= lambda perp w >= 0:
///
///   minimise sum_i lambda^i'(M lambda^i + W d^i)  subject to  M lambda^i + W d^i >= epsilon.
///
/// Its unknowns are x = (M, W), p = n (n + k), each row by row; its constraints, [samples n, p], are sample by sample
/// the rows of (I x lambda^i', I x d^i'). A known entry is held by its bounds.
///
/// The objective is >= epsilon e'lambda summed over the samples, see lower_bound, which M = 0, W d = epsilon e attains
/// as the truth does: epsilon > 0 does not exclude that trivial solution, one known entry of each row does.
///   lambda: [samples, n], >= 0. d: [samples, k], with a column of ones for a bias.
/// Throws c10::Error where a shape or dtype does not fit or epsilon is negative.
LinearProgram complementarity_program(const at::Tensor& lambda, const at::Tensor& d, const KnownEntries& known,
                                      double epsilon = 0);

/// The part of a complementarity_program with row i of M and W alone, in the unknowns [M_i|W_i]; the rows share neither
/// a constraint nor a term of the cost.
LinearProgram row_program(const LinearProgram& program, std::int64_t n, std::int64_t i);

/// The same with weight e's added to the cost, of further unknowns s >= |x|: (x, s) with -s <= x <= s.
LinearProgram with_l1(const LinearProgram& program, double weight);

/// What the objective of each row's program is at least, [n]: epsilon times the sum of its lambda.
at::Tensor lower_bound(const at::Tensor& lambda, double epsilon);

}  // namespace lcp::training
