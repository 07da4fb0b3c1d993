// Lemke's complementary pivoting on a condensed tableau.
//
//   [CPS]  Cottle, Pang, Stone: The Linear Complementarity Problem, SIAM, 2009.
//   [Murty] Murty: Linear Complementarity, Linear and Nonlinear Programming, Heldermann, 1988.
#pragma once

#include <cstdint>
#include <vector>

#include "interrupt/checkpoint.h"
#include "linalg/aligned.h"
#include "solver/kernels.h"
#include "solver/termination.h"

namespace lcp::solver {

/// Fills `perturbation`, n numbers: the generic direction of an infinitesimal change of q. It prevents ties of ratios,
/// as lexicographic ordering would.
void perturb(std::uint64_t cover, int n, double* perturbation);

/// Whether the row w_i = M_i z + q_i bounds z from above: q_i > 0 and all M_ij <= 0.
bool bounds_from_above(int n, const double* row, double q);

/// One run of Lemke's method [CPS, alg. 4.4.5] on w = unit M z + d z0 + q with a covering vector d. It pivots along
/// almost complementary bases until z0 leaves (kCandidate), nothing blocks the driving variable (kFailed: a ray), or
/// the budget is spent (kBudget). Allocates only in the constructor.
class Lemke {
 public:
  struct Options {
    double pivot_tolerance = 1e-8;  ///< entries below this times their column's maximum are no pivots
    double tie_tolerance = 1e-8;    ///< relative width within which ratios count as tied
    std::int64_t max_pivots = 0;
    std::uint64_t cover = 0;  ///< 0: d = e; else the seed of a random d in [0.5, 2)^n
    /// Whether d_i = 0 in the rows that bound z from above: q_i > 0 and all M_ij <= 0. In a variational inequality over
    /// a box each z_i has such a bound or is the multiplier of one. Lemke's method then ends on no ray.
    bool bounded = false;
    double unit = 1;  ///< a power of two, which M is multiplied by
  };

  explicit Lemke(int n);
  Lemke(const Lemke&) = delete;
  Lemke& operator=(const Lemke&) = delete;

  /// M: n x n row-major, q: n, both finite, with min q < 0.
  Termination run(const double* M, const double* q, const Options& options);

  /// After kCandidate: the basic z, n values >= 0 with 0 for the nonbasic ones, and which z are basic.
  const double* z() const { return values_.data() + n_; }
  const unsigned char* basic() const { return basic_.data() + n_; }

  /// After kCandidate, a Newton step within the basis from where w = M z + q, by the inverse that the tableau holds.
  void refine(const double* w);

  std::int64_t pivots() const { return tableau_.pivots; }  ///< pivots of the last run

 private:
  void set_cover(std::uint64_t cover);
  void uncover_bounds(const double* M, const double* q);
  void read_solution();

  int n_;
  linalg::AlignedVector<double> columns_, scratch_;
  std::vector<int> row_variable_, complement_column_;
  LemkeTableau tableau_;
  std::uint64_t cover_ = 0;
  std::vector<double> covering_, perturbation_;
  std::vector<double> values_;  // the values of all variables, w before z
  std::vector<unsigned char> basic_;
  interrupt::Pace pace_;
};

}  // namespace lcp::solver
