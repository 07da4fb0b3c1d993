// Solves an LCP: returns a verified solution, or a status that says why there is none.
#pragma once

#include <cstdint>
#include <vector>

#include "lcp/status.h"
#include "solver/rungs.h"

namespace lcp::solver {

/// Solves one problem after another of the same n, by the algorithm that the settings name or by the rungs of rungs.h.
/// Allocates in the constructor, when a rung is first reached, in Farkas, and for a basis near singular as
/// linalg::Basis does.
class Ladder {
 public:
  Ladder(int n, const Settings& settings);

  /// M: n x n row-major, q, z, w: n. guess: n, whose positive entries propose the active set, or nullptr. Where the
  /// status is not kSolved, z and w are NaN.
  Status solve(const double* M, const double* q, const double* guess, double* z, double* w);

  std::int64_t pivots() const { return climb_.pivots; }  ///< spent on the last problem, see Settings::max_pivots

  /// The rung that decided the last problem, or the last that was tried; nullptr where none was.
  const Rung* rung() const { return rung_; }

  /// After kInfeasible: y >= 0, n, with M'y <= 0 and q'y < 0.
  const double* farkas() const { return climb_.farkas->y(); }

 private:
  Decision decide();
  bool keep();

  Climb climb_;
  const Rung* rung_ = nullptr;
  // The best solution so far, while none has held in all rows.
  const Rung* kept_rung_ = nullptr;
  double kept_residual_ = 0;
  std::vector<double> kept_z_, kept_w_;
};

}  // namespace lcp::solver
