// Newton's method with an exact line search, for the problems of problem.h [CPH, sec. V], along a path of softer ones.
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

enum class End {
  kSolved,
  kLimit,  ///< max_iterations ran out
  kStuck,  ///< a step changes nothing, or is not finite
  kBad,    ///< the problem is not well_posed, or A is not positive definite
};

struct Outcome {
  End end;
  std::int64_t iterations;
  double residual;  ///< |D g| / max(|D A v|, |D J' gamma|) with D = diag(A)^-1/2 and the gradient g
};

/// Solved is a residual of at most the tolerance; or, since v rounded changes gamma by what that is over R, |D g| of at
/// most |D e|, where e is what rounding can make of a gradient that is 0:
///
///   e = (n + 3 c + 4) u (|A| (|v| + |v_free|) + |J|' (|gamma| + |K| (|J| |v| + |v_hat|))),   K = P'(y) R^-1, u = 2^-53
///
///   [H] Higham: Accuracy and Stability of Numerical Algorithms, SIAM, 2002, sec. 3.1.
///
/// From a start with a residual above .1 it solves softer problems first, to that residual: those with R of at least
/// .1 w, .01 w and so on, for the size w of the contact's block of J D^2 J'. Without these, the steps that it takes
/// grow without bound as R falls.
///
/// Allocates only in the constructor, for what DenseSystem serves.
class Newton {
 public:
  Newton(Eigen::Index n, Eigen::Index contacts);

  /// v: [n], where it begins and what it ends with; y, gamma: [3 c]. All three are what they were last, where not
  /// solved, and untouched where the problem is bad.
  Outcome solve(const Problem& problem, const Limits& limits, double* v, double* y, double* gamma);

 private:
  struct Residual {
    double absolute, relative;  // |D g|, and as Outcome::residual
  };

  void soften(const Problem& problem, double softness);
  Law law(const Problem& problem, Eigen::Index contact) const;
  double scaled_norm(const Vector& x);
  void impulses(const Problem& problem);
  void compliances(const Problem& problem);
  double rounding(const Problem& problem, const System& system);
  Residual evaluate(const Problem& problem, const System& system);
  double step_length(const Problem& problem, double slope, double curvature);

  Eigen::Index n_, contacts_;
  AnySystem systems_;
  Vector v_, v_free_, free_momentum_, v_hat_, scale_, momentum_, push_, gradient_, step_, work_, scaled_;  // [n]
  Vector y_, gamma_, Jv_, Jstep_, contact_work_;                                                           // [3 c]
  Vector sizes_;                                                                                           // [c], w
  double softness_ = 0;  // of the problem at hand: of R, at least, over w
  std::vector<Projection> at_;
  std::vector<Eigen::Matrix3d> K_;
};

}  // namespace lcp::contact
