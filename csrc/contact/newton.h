// Newton's method with an exact line search for a Problem [CPH, sec. V]. Far from the solution it solves problems with
// a larger regularisation first (continuation). Where the regularisation is small, these are the steps of the method of
// multipliers [R].
//
//   [CPH] Castro, Permenter, Han: An unconstrained convex formulation of compliant contact, IEEE T-RO 39, 2023.
//   [H]   Higham: Accuracy and Stability of Numerical Algorithms, SIAM, 2002.
//   [R]   Rockafellar: Augmented Lagrangians and applications of the proximal point algorithm in convex programming,
//         Math. Oper. Res. 1, 1976.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "contact/cone.h"
#include "contact/problem.h"
#include "contact/system.h"
#include "interrupt/checkpoint.h"
#include "lcp/status.h"

namespace lcp::contact {

/// The line search tries step lengths up to this multiple of the Newton step.
inline constexpr double kMaxStepLength = 1.5;

/// The line search ends where the slope of the objective is at most this part of the slope at its start.
inline constexpr double kSlopeTolerance = 1e-12;

/// The line search evaluates the slope at most this number of times.
inline constexpr int kMaxEvaluations = 60;

/// The bounds on rounding errors cost as much as a gradient. So they are computed only where |D g| is at most this part
/// of the momenta.
inline constexpr double kNearSolution = 1e-4;

/// The largest residual that the rounding errors of the impulses may leave where only v is unknown. Where they leave
/// more, y becomes an unknown of its own, and they may leave kNearSolution.
inline constexpr double kMaxBlur = 1e-7;

/// The method solves softened problems first if the residual at the start is above this, and solves each to this
/// residual.
inline constexpr double kFarFromSolution = 0.1;

/// The regularisation of the first softened problem over w. From each softened problem to the next it falls by this
/// factor.
inline constexpr double kSoftnessFactor = 0.1;

/// The multiple of w below which an R makes y an unknown of its own from the start. For larger R, the rounding of v
/// changes gamma by a relative error of at most about 1e-11.
inline constexpr double kStiff = 1e-5;

inline constexpr double kUnitRoundoff = std::numeric_limits<double>::epsilon() / 2;

/// max_iterations where the caller names none.
inline constexpr std::int64_t kDefaultMaxIterations = 1000;

struct Limits {
  double tolerance;
  std::int64_t max_iterations;
};

/// The reason why the method stopped.
enum class Termination {
  kSolved,          ///< the residual is small enough, see Newton
  kIterationLimit,  ///< max_iterations ran out
  kNoProgress,      ///< rounding errors are too large, see Newton; or a number is not finite
  kInvalid,         ///< the problem is not well_posed, or A is not positive definite
};

constexpr Status status_of(Termination termination) {
  switch (termination) {
    case Termination::kSolved:
      return Status::kSolved;
    case Termination::kIterationLimit:
      return Status::kPivotLimit;
    case Termination::kNoProgress:
      return Status::kNotFound;
    case Termination::kInvalid:
      break;
  }
  return Status::kBadInput;
}

struct Outcome {
  Termination termination;
  std::int64_t iterations;
  double residual;  ///< the residual of the velocities, see Newton
};

/// The residual is |D g| / max(|D A (v - v_free)|, |D J' gamma|), with D = diag(A)^-1/2 and the gradient g. It compares
/// changes of the momentum, which are the same for all observers. The momentum itself depends on the speed of the
/// observer. The bounds on the rounding errors of g [H, sec. 3.1], with u = 2^-53, depend on this speed, too:
///
///   e = (n + 3 c + 4) u |A| (|v| + |v_free|)   of the momentum
///   f = (n + 3 c + 4) u |J|' (|gamma| + |K| (|J| |v| + |v_hat|)),   K = P'(y) R^-1,   of the impulses
///
/// No v has a smaller |D g| than about |D e|, so that the residual counts as 0 where |D g| <= |D e|. A problem is
/// solved where the residual is at most the tolerance. It is also solved where |D g| <= |D (e + f)| and the residual is
/// at most 1e-7.
///
/// If the residual at the start is above .1, the method first solves softened problems, to a residual of .1 each. The
/// first of them has a regularisation of at least .1 w at each contact, the next of .01 w, and so on. Here w is the
/// mean of the diagonal of the contact's block of J D^2 J'. Without this continuation the number of Newton steps grows
/// without bound as R falls.
///
/// The rounding of v changes gamma too much in three cases: R < 1e-5 w for a contact; a Newton step changes no
/// velocity; or |D g| <= |D (e + f)| and the residual is larger than 1e-7. Then y is an unknown of its own, in
///
///   A (v - v_free) = J' P(y),   R y = v_hat - J v,
///
/// and the problem is solved where both equations hold. The residual of the first is judged as above, with K = 0 in f
/// and with 1e-4 in place of 1e-7. The residual of the second must have the size of rounding errors in each contact:
///
///   max |v_hat - J v - R y| <= 4 (n + 3 c + 4) u max (|J| (|v| + |v_free|) + |v_hat| + R |gamma|)
///
/// The softened problems are then steps of the method of multipliers [R]. A problem with the regularisation S >= R has
/// v_hat + (S - R) g in place of v_hat, where g are the impulses of the previous problem. It is solved to a residual of
/// .01 relative to A (v - v_free). If gamma = g, the softened problem has the solution of the given problem, so that
/// most problems are solved at an S much larger than R. The smallest S is the larger one of R and u w. The method makes
/// no progress
///   - after more than ten failures, which are problems with the smallest S and Newton steps that do not descend or
///     change no velocity;
///   - after 300 Newton steps;
///   - if H is not positive definite in double precision.
/// If some v has J v - v_hat in the dual cones, this happens rarely, and only for R / w of about u or less. Otherwise
/// contacts are pressed against each other, gamma grows as 1 / R, and it happens for R < 1e-12 w.
///
/// Allocates only in the constructor, unless the problem is sparse (AnySystem).
class Newton {
 public:
  Newton(Eigen::Index n, Eigen::Index contacts);

  /// v: [n], the start on entry and the solution on return. y, gamma: [3 c], results. If the problem is not solved, v,
  /// y and gamma are those of the last iteration; if it is invalid, they are not written.
  Outcome solve(const Problem& problem, const Limits& limits, double* v, double* y, double* gamma);

 private:
  struct Residual {
    double absolute;  // |D g|
    double relative;  // Outcome::residual
    bool is_small;    // whether |D g| is at most kNearSolution of the momenta, as rounding errors are
  };

  Outcome solve_for_v(const Problem& problem, const Limits& limits, System& system);
  Outcome solve_for_v_and_y(const Problem& problem, const Limits& limits, System& system, std::int64_t iteration);

  void soften(const Problem& problem, double softness);
  void shift(const Problem& problem, const System& system, double softness);
  Law law(const Problem& problem, Eigen::Index contact) const;
  double scaled_norm(const Vector& x);  // |D x|
  void impulses(const Problem& problem);
  void compliances(const Problem& problem);
  double momentum_rounding(const System& system);                 // |D e|
  double rounding(const Problem& problem, const System& system);  // |D (e + f)|
  Residual evaluate(const Problem& problem, const System& system);
  bool is_rounding(const Problem& problem, const System& system, const Residual& at);  // |D g| <= |D (e + f)|
  bool accurate(const Problem& problem, const Limits& limits, const System& system, const Residual& at);
  bool complies(const Problem& problem, const System& system);
  bool newton_step(const Problem& problem, System& system);
  double step_length(const Problem& problem, double slope, double curvature);

  Eigen::Index n_, contacts_;
  AnySystem systems_;
  Vector v_, v_free_, free_momentum_, v_hat_, scale_, momentum_, push_, gradient_, step_, work_, scaled_;  // [n]
  Vector y_, gamma_, Jv_, Jstep_, contact_work_;                                                           // [3 c]
  Vector low_;                                                                                             // [3 c]
  Vector delassus_;                                                                                        // [c], w
  double softness_ = 0;        // The current problem has R >= softness_ w.
  bool y_is_unknown_ = false;  // Then y is y_ + low_, with the rounding errors low_ of y_; else it is computed from v_.
  std::vector<Projection> at_;
  std::vector<Eigen::Matrix3d> K_;
  interrupt::Pace pace_;
};

}  // namespace lcp::contact
