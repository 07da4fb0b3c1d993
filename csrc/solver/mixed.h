// Mixed LCPs: some rows are equations, their unknowns of any sign.
#pragma once

#include <optional>
#include <vector>

#include "lcp/status.h"
#include "linalg/basis.h"
#include "solver/candidate.h"
#include "solver/elimination.h"
#include "solver/enumeration.h"
#include "solver/farkas.h"
#include "solver/ladder.h"

namespace lcp::solver {

/// Solves, one after another, problems of k equations and n complementary pairs,
///
///   0 = A x + B z + p,   w = C x + M z + q,   0 <= z  perp  w >= 0,
///
/// given as H = [A B; C M] and h = (p, q). Where rows and columns of H differ much in size, powers of two first bring
/// them to like size. All further computations, including the verification, are in these units.
///
/// The equations are eliminated, see elimination.h; the ladder solves the LCP that remains; its basis is then solved
/// afresh. If that fails, other pivots are tried, and at last all complementary bases, if they are few.
/// Settings::max_pivots bounds each of these attempts. Allocates as Ladder does.
class Mixed {
 public:
  Mixed(int k, int n, const Settings& settings);

  /// H: (k + n)^2 row-major, h: k + n, guess: n or nullptr, see Ladder. v: k + n, is (x, z), and y: k + n, is (0, w);
  /// NaN where the status is not kSolved. kInfeasible: no x and z >= 0 have A x + B z + p = 0 and C x + M z + q >= 0.
  Status solve(const double* H, const double* h, const double* guess, double* v, double* y);

 private:
  bool load(const double* H, const double* h);
  Status decide(const double* guess);
  std::optional<Status> eliminate(const double* guess, const Elimination::Pivoting& pivoting, bool quick);
  bool accept_reduced();
  bool enumerate();
  bool proved(const double* y);
  bool prove_split();
  bool write(double* v, double* y);

  int k_, n_, size_;
  Settings settings_;
  bool ran_out_ = false;
  std::vector<double> H_, h_;  // 2^-r H 2^-c and 2^-(r + f) h
  std::vector<int> row_exponent_, column_exponent_;
  int vector_exponent_ = 0;
  bool scaled_exactly_ = true;
  const double* given_H_ = nullptr;
  const double* given_h_ = nullptr;
  ScaledProblem problem_;
  Candidate candidate_;
  Elimination elimination_;
  std::vector<std::optional<Ladder>> ladders_, quick_ladders_;  // indexed by the number of equations that are left
  std::optional<Enumeration> enumeration_;
  std::optional<linalg::Basis> basis_;
  std::optional<Farkas> farkas_;
  std::vector<unsigned char> marked_;
  std::vector<double> v_;                      // (x, z)
  std::vector<double> M_, q_, guess_, z_, w_;  // the LCP that is solved instead
};

}  // namespace lcp::solver
