// Mixed LCPs: some rows are equations, their unknowns of any sign.
#pragma once

#include <optional>
#include <vector>

#include "lcp/status.h"
#include "linalg/basis.h"
#include "solver/ladder.h"

namespace lcp::solver {

/// Solves, one after another, problems of k equations and n complementary pairs,
///
///   0 = A x + B z + p,   w = C x + M z + q,   0 <= z  perp  w >= 0,
///
/// given as H = [A B; C M] and h = (p, q). A regular A is eliminated: M - C A^-1 B and q - C A^-1 p pose an LCP. Else,
/// or where that fails, x = x+ - x- with each equation as two inequalities makes an LCP of n + 2k unknowns with the
/// same solutions, semidefinite where H is. Either way the result is verified on H and h, after a fresh solve of its
/// basis. Settings::max_pivots bounds each of the two attempts. Allocates as Ladder does.
class Mixed {
 public:
  Mixed(int k, int n, const Settings& settings);

  /// H: (k + n)^2 row-major, h: k + n, guess: n or nullptr, see Ladder. v: k + n, is (x, z), and y: k + n, is (0, w);
  /// NaN where the status is not kSolved. kInfeasible: no x and z >= 0 have A x + B z + p = 0 and C x + M z + q >= 0.
  Status solve(const double* H, const double* h, const double* guess, double* v, double* y);

 private:
  std::optional<Status> eliminate(const double* guess);
  Status split();
  bool accept();
  bool proved(const double* y);
  bool write(double* v, double* y);

  int k_, n_, size_;
  Settings settings_;
  bool single_precision_;
  linalg::Basis equations_, basis_;
  std::optional<Ladder> reduced_, split_;
  // H and h with largest entries in [0.5, 1), see ScaledProblem.
  std::vector<double> H_, h_, v_, y_, trial_v_, trial_y_, x_;
  int matrix_exponent_ = 0;
  int vector_exponent_ = 0;
  const double* given_H_ = nullptr;
  const double* given_h_ = nullptr;
  bool scaled_exactly_ = true;
  std::vector<unsigned char> marked_;
  std::vector<double> guess_;          // in the units of H_ and h_
  std::vector<double> M_, q_, z_, w_;  // the LCP that is solved instead of the mixed one
  std::vector<double> X_;              // A^-1 (B p), column by column
};

}  // namespace lcp::solver
