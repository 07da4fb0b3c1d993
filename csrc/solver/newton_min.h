// Newton's method on min(z, M z + q) = 0.
//
//   [HP] Harker, Pang: A damped-Newton method for the linear complementarity problem, Lectures in Applied Mathematics
//        26, 1990.
//   [BG] Ben Gharbia, Gilbert: Nonconvergence of the plain Newton-min algorithm for linear complementarity problems
//   with
//        a P-matrix, Mathematical Programming 134, 2012.
//   [JP] Judice, Pires: A block principal pivoting algorithm for large-scale strictly monotone linear complementarity
//        problems, Computers & Operations Research 21, 1994.
#pragma once

#include <cstdint>
#include <vector>

#include "solver/end.h"
#include "solver/lu.h"

namespace lcp::solver {

/// From the basis a = { i : q_i < 0 } on, each step solves M_aa z_a = -q_a and exchanges every pair with z_i < 0 or
/// w_i < 0 at once [HP]. That may cycle even for P-matrices [BG]; so where ten exchanges did not lower the number of
/// such pairs, only the last of them is exchanged until it falls, and P-matrices are then solved in finitely many
/// steps [JP]. Allocates only in the constructor.
class NewtonMin {
 public:
  explicit NewtonMin(int n);

  /// M: n x n row-major, q: n, both finite. Stuck where an M_aa on the way is singular.
  End run(const double* M, const double* q, std::int64_t max_steps);

  /// After kClaim: z >= 0, and its basis.
  const double* z() const { return z_.data(); }
  const unsigned char* basic() const { return basic_.data(); }

  std::int64_t steps() const { return steps_; }  ///< of the last run; each factors one M_aa

 private:
  bool solve_basis(const double* M, const double* q);

  int n_;
  Lu lu_;
  std::vector<int> index_;
  std::vector<double> x_, z_, w_;
  std::vector<unsigned char> basic_;
  std::int64_t steps_ = 0;
};

}  // namespace lcp::solver
