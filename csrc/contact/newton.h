// Newton's method with an exact line search for a Problem [CPH, sec. V]. Far from the solution it solves problems with
// a larger regularisation first (continuation).
//
//   [CPH] Castro, Permenter, Han: An unconstrained convex formulation of compliant contact, IEEE T-RO 39, 2023.
//   [H]   Higham: Accuracy and Stability of Numerical Algorithms, SIAM, 2002.
#pragma once

#include <cstdint>
#include <vector>

#include "contact/cone.h"
#include "contact/problem.h"
#include "contact/system.h"

namespace lcp::contact {

struct Limits {
  double tolerance;
  std::int64_t max_iterations;
};

/// Why the method stopped.
enum class Termination {
  kSolved,          ///< the residual is small enough, see Newton
  kIterationLimit,  ///< max_iterations ran out
  kNoProgress,      ///< a step changes no velocity, or is not finite
  kInvalid,         ///< the problem is not well_posed, or A is not positive definite
};

struct Outcome {
  Termination termination;
  std::int64_t iterations;
  double residual;  ///< |D g| / max(|D A v|, |D J' gamma|) with D = diag(A)^-1/2 and the gradient g
};

/// A problem is solved where the residual is at most the tolerance. It is solved as well where |D g| <= |D e|, with the
/// bound e on the rounding errors of the computed gradient [H, sec. 3.1]:
///
///   e = (n + 3 c + 4) u (|A| (|v| + |v_free|) + |J|' (|gamma| + |K| (|J| |v| + |v_hat|))),   K = P'(y) R^-1, u = 2^-53
///
/// The rounding of v alone changes gamma in proportion to R^-1, so that for small R no v may have a smaller residual.
///
/// If the residual at the start is above .1, the method first solves softened problems, to a residual of .1 each. In
/// the first of them the regularisation of each contact is at least .1 w, in the next .01 w, and so on, where w is the
/// mean of the diagonal of the contact's block of J D^2 J'. Without this continuation the number of Newton steps grows
/// without bound as R falls.
///
/// Allocates only in the constructor, unless the problem is sparse (AnySystem).
class Newton {
 public:
  Newton(Eigen::Index n, Eigen::Index contacts);

  /// v: [n], the start on entry and the solution on return. y, gamma: [3 c], results. If the problem is not solved they
  /// are those of the last iteration; if it is invalid they are not written.
  Outcome solve(const Problem& problem, const Limits& limits, double* v, double* y, double* gamma);

 private:
  struct Residual {
    double absolute;  // |D g|
    double relative;  // Outcome::residual
  };

  void soften(const Problem& problem, double softness);
  Law law(const Problem& problem, Eigen::Index contact) const;
  double scaled_norm(const Vector& x);  // |D x|
  void impulses(const Problem& problem);
  void compliances(const Problem& problem);
  double rounding(const Problem& problem, const System& system);  // |D e|
  Residual evaluate(const Problem& problem, const System& system);
  double step_length(const Problem& problem, double slope, double curvature);

  Eigen::Index n_, contacts_;
  AnySystem systems_;
  Vector v_, v_free_, free_momentum_, v_hat_, scale_, momentum_, push_, gradient_, step_, work_, scaled_;  // [n]
  Vector y_, gamma_, Jv_, Jstep_, contact_work_;                                                           // [3 c]
  Vector delassus_;                                                                                        // [c], w
  double softness_ = 0;  // The current problem has R >= softness_ w.
  std::vector<Projection> at_;
  std::vector<Eigen::Matrix3d> K_;
};

}  // namespace lcp::contact
