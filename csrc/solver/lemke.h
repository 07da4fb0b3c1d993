// Lemke's complementary pivoting on a condensed tableau.
//
//   [CPS]  Cottle, Pang, Stone: The Linear Complementarity Problem, SIAM, 2009.
//   [Murty] Murty: Linear Complementarity, Linear and Nonlinear Programming, Heldermann, 1988.
#pragma once

#include <cstdint>
#include <vector>

#include "solver/end.h"

namespace lcp::solver {

/// One run of Lemke's method [CPS, alg. 4.4.5]: w = M z + d z0 + q with a covering vector d > 0, pivoted along
/// almost complementary bases until z0 leaves (a claim), the driving variable is unblocked (stuck on a ray), or
/// the budget ends. Allocates only in the constructor.
class Lemke {
 public:
  struct Options {
    double pivot_tolerance = 1e-8;  ///< entries below this times their column's maximum are no pivots
    double tie_tolerance = 1e-8;    ///< relative width within which ratios count as tied
    std::int64_t max_pivots = 0;
    std::uint64_t cover = 0;  ///< 0: d = e; else the seed of a random d in [0.5, 2)^n
  };

  explicit Lemke(int n);

  /// M: n x n row-major, q: n, both finite, with min q < 0.
  End run(const double* M, const double* q, const Options& options);

  /// After kClaim: the basic z, n values >= 0 with 0 for the nonbasic ones, and which z are basic.
  const double* z() const { return z_.data(); }
  const unsigned char* basic() const { return basic_.data(); }

  std::int64_t pivots() const { return pivots_; }  ///< of the last run

 private:
  int artificial() const { return 2 * n_; }
  double* row(int i) { return tableau_.data() + static_cast<std::size_t>(i) * stride_; }
  void load(const double* M, const double* q, std::uint64_t cover);
  int first_row() const;
  void pivot(int r, int c);
  int ratio_test(int c, int artificial_row, double pivot_tolerance, double tie_tolerance);
  void read_solution();

  int n_;
  int stride_;                   // of a tableau row, padded to whole cache lines
  std::vector<double> tableau_;  // n rows of [n nonbasic columns | d | q | perturbation of q]
  std::vector<int> row_variable_, column_variable_, column_of_;  // w_i is variable i, z_i is n + i, z0 is artificial()
  std::vector<double> z_;
  std::vector<unsigned char> basic_;
  double largest_q_ = 0;
  std::int64_t pivots_ = 0;
};

}  // namespace lcp::solver
