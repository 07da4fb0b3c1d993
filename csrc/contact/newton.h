// Convex compliant contact: the velocities of bodies that touch at c points.
//
//   v = argmin |v - v_free|_A^2 / 2 + sum_k |P_k(y_k)|_R^2 / 2,   y = -R^-1 (J v - v_hat),   gamma = P(y)
//
// with the cones of cone.h: strictly convex, of which the gradient is A (v - v_free) - J' gamma and the Hessian
// A + J' P'(y) R^-1 J [CPH].
#pragma once

#include <Eigen/Cholesky>
#include <Eigen/Core>
#include <vector>

#include "contact/cone.h"

namespace lcp::contact {

using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

/// One problem, in row-major arrays that somebody else owns.
struct Problem {
  const double* A;       ///< [n, n], symmetric and positive definite
  const double* v_free;  ///< [n]
  const double* J;       ///< [3 c, n], of each contact (t1, t2, n)
  const double* v_hat;   ///< [3 c]
  const double* R;       ///< [3 c], > 0, that of t1 that of t2
  const double* mu;      ///< [c], >= 0
};

struct Limits {
  double tolerance;  ///< of |D g| / max(|D A v|, |D J' gamma|), D = diag(A)^-1/2, g the gradient
  int max_iterations;
};

enum class End {
  kSolved,
  kLimit,  ///< max_iterations ran out
  kStuck,  ///< rounding leaves nothing to gain, and the residual above the tolerance
  kBad,    ///< A is not positive definite, or a number is not finite or out of its range
};

struct Outcome {
  End end;
  int iterations;
  double residual;  ///< that of Limits
};

/// Newton's method with an exact line search. Allocates only in the constructor.
class Newton {
 public:
  Newton(int n, int contacts);

  /// v: [n], where it begins and what it ends with; gamma: [3 c]. Both are what they were last, where not solved.
  Outcome solve(const Problem& problem, const Limits& limits, double* v, double* gamma);

 private:
  using Vector = Eigen::VectorXd;

  bool fits(const Problem& problem) const;
  void project_all(const Problem& problem, const Vector& y, double* gamma);
  double step_length(const Problem& problem, double slope, double curvature);

  int n_, contacts_;
  Vector scale_, momentum_, gradient_, step_, push_, moved_;  // [n]
  Vector y_, Jv_, Jstep_, trial_, trial_gamma_;               // [3 c]
  Eigen::MatrixXd H_;
  Matrix KJ_;  // [3, n], of one contact
  std::vector<Projection> at_;
};

}  // namespace lcp::contact
