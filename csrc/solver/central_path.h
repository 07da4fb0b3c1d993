// The central path { (z, w) : w = M z + q, z_i w_i = kappa, z, w > 0 } and its limit as kappa falls to 0.
//
//   [CH] Chen, Harker: A non-interior-point continuation method for linear complementarity problems, SIAM Journal on
//        Matrix Analysis and Applications 14, 1993.
//   [K]  Kanzow: Some noninterior continuation methods for linear complementarity problems, ibid. 17, 1996.
#pragma once

#include <cstdint>
#include <vector>

#include "linalg/lu.h"
#include "solver/termination.h"

namespace lcp::solver {

/// Damped Newton steps on z_i + w_i - sqrt((z_i - w_i)^2 + 4 kappa) = 0, which holds exactly where z_i w_i = kappa and
/// z_i + w_i > 0; iterates may leave the positive orthant [CH; K]. The first num_equations rows are equations w_i = 0
/// with a z_i of any sign. Allocates in the constructor and in the first call of point().
class CentralPath {
 public:
  CentralPath(int n, int num_equations);

  /// Follows the path from kappa = 1 to 1e-16. M: n x n row-major, q: n, both of about unit size. `start` 0 begins at
  /// z = e, another seed at a random z: without monotonicity different starts may lead to different solutions, or none.
  Termination run(const double* M, const double* q, std::uint64_t start, std::int64_t max_steps);

  /// After kCandidate: z >= 0, and the basis { i : z_i > w_i }.
  const double* z() const { return z_.data(); }
  const unsigned char* basic() const { return basic_.data(); }

  std::int64_t steps() const { return steps_; }  ///< steps of the last run; each factors one matrix

  /// The point of the path for this kappa > 0 that Newton's method finds from a solution z_0 of the LCP. The smaller
  /// one of each pair z_i, w_i is exactly kappa over the larger. Returns false where no point is found.
  ///   M: n x n row-major, q, z_0, z, w: n, at any scale.
  bool point(const double* M, const double* q, const double* z_0, double kappa, double* z, double* w);

 private:
  double merit(const double* z, double kappa, double* w, double* f) const;
  bool step(double kappa, double& merit, int halvings);

  int n_, num_equations_;
  linalg::Lu lu_;
  const double* M_ = nullptr;
  const double* q_ = nullptr;
  std::vector<double> z_, w_, weight_, f_, d_, trial_z_, trial_w_, trial_f_, scaled_M_, scaled_q_;
  std::vector<unsigned char> basic_;
  std::vector<int> row_exponent_, column_exponent_;
  std::int64_t steps_ = 0;
};

}  // namespace lcp::solver
