// Newton's method on min(z, M z + q) = 0.
//
//   [HP] Harker, Pang: A damped-Newton method for the linear complementarity problem, Lectures in Applied Mathematics
//        26, 1990.
//   [BG] Ben Gharbia, Gilbert: Nonconvergence of the plain Newton-min algorithm for linear complementarity problems
//        with a P-matrix, Mathematical Programming 134, 2012.
//   [JP] Judice, Pires: A block principal pivoting algorithm for large-scale strictly monotone linear complementarity
//        problems, Computers & Operations Research 21, 1994.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "linalg/cholesky.h"
#include "linalg/lu.h"
#include "solver/termination.h"

namespace lcp::solver {

/// From the basis a = { i : q_i < 0 } on, each step solves M_aa z_a = -q_a and exchanges every pair with z_i < 0 or w_i
/// < 0 at once [HP]. This may cycle even for P-matrices [BG]. So after eleven exchanges in a row that did not lower the
/// number of such pairs, only the last such pair is exchanged until the number falls. Then P-matrices are solved in
/// finitely many steps [JP]. Allocates in the constructor, and when a matrix is first met that is not symmetric.
class NewtonMin {
 public:
  explicit NewtonMin(int n);

  /// M: n x n with its spans, q: n, both finite. symmetric: whether M is symmetric up to rounding. Then steps use its
  /// lower triangle, and fail where an M_aa on the way is not definite; otherwise they fail where it is singular.
  /// gives_up: whether to fail, too, after four exchanges in a row that did not lower the number of wrong pairs. Three
  /// suffice for nearly all definite problems that are well conditioned. Near a singular M, Lemke's method is faster
  /// than the steps that would follow.
  Termination run(const linalg::Rows& M, bool symmetric, const double* q, std::int64_t max_steps,
                  bool gives_up = false);

  /// Computes only z = max(0, -M_aa^-1 q_a) for the basis that n flags mark; false where M_aa is not definite.
  bool try_basis(const linalg::Rows& symmetric_M, const double* q, const unsigned char* basic);

  /// After kCandidate, a Newton step within the basis from where w = M z + q.
  void refine(const double* w);

  /// After kCandidate: z >= 0, and its basis.
  const double* z() const { return z_.data(); }
  const unsigned char* basic() const { return basic_.data(); }

  std::int64_t steps() const { return steps_; }  ///< steps of the last run; each factors one M_aa

 private:
  bool solve_basis(const linalg::Rows& M, const double* q);
  void list_basis();
  bool factor(const linalg::Rows& M);
  bool correct(const double* w);
  void clamp();

  int n_;
  bool symmetric_ = false;
  linalg::Cholesky cholesky_;
  std::optional<linalg::Lu> lu_;
  int k_ = 0;               // the number of basic pairs
  std::vector<int> index_;  // the basic pairs, ascending, then the others, descending
  std::vector<double> x_, z_, w_;
  double largest_z_ = 0;
  std::vector<unsigned char> basic_, wrong_;
  std::int64_t steps_ = 0;
};

}  // namespace lcp::solver
