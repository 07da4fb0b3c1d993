// Proofs that an LCP has no solution because w >= 0 alone cannot be met.
#pragma once

#include <cstdint>
#include <vector>

#include "solver/lemke.h"
#include "solver/termination.h"

namespace lcp::solver {

/// Either some z >= 0 has M z + q >= 0, or some y >= 0 has M'y <= 0 and q'y < 0, never both [Farkas, 1902; Cottle,
/// Pang, Stone, 2009, thm. 2.7.9]. The y nearest to -q is the residual of the least-squares problem min |min(0, M z +
/// q)|, z >= 0. It solves an LCP of 2n unknowns,
///
///   0 <= z  perp  -M'y >= 0,   0 <= y  perp  M z + y + q >= 0,
///
/// whose matrix is positive semidefinite, so that Lemke's method solves it. The inequalities of y are then checked in
/// exact arithmetic. If rounding has spoiled inequalities that hold with equality, y is moved into the cone's interior,
/// or to integers, and checked again. Allocates in the constructor and in these checks.
class Farkas {
 public:
  explicit Farkas(int n);

  /// kCandidate: proved to have no solution. kFailed: no proof was found. M: n x n row-major, q: n, both finite,
  /// min q < 0.
  ///   r, c: exponents of two that bring the rows and columns of M to like size, see equilibrate.h.
  Termination run(const double* M, const double* q, const int* r, const int* c, std::int64_t max_pivots);

  /// After kCandidate: y, in the units of M and q but for a common factor.
  const double* y() const { return y_.data(); }

  std::int64_t pivots() const { return pivots_; }  ///< pivots of the last run

 private:
  bool scale(const double* M, const double* q, const int* r, const int* c);
  bool proved(const std::vector<double>& y);
  bool prove_inside();
  bool prove_integers();
  bool unscale(const int* r);

  int n_;
  Lemke lemke_;
  std::int64_t pivots_ = 0;
  std::vector<double> M_, q_, big_M_, big_q_, y_;
};

}  // namespace lcp::solver
