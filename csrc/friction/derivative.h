// The derivative of the solution of a Problem of contact with friction, by the implicit function theorem.
//
// What a contact does ties the change of its impulse to that of its velocity, C du + D dh = E dmu in the units of
// Impulses.
//
//   apart         C = 0, D = I
//   stick, slide  LinearLaw
//   smooth        SmoothLaw, at a point of the smooth path
//
// and du = r + W dh with the change r of u for the same impulses, so that N dh = E dmu - C r with N = C W + D. Where N
// is singular, the least-squares solution dh of least norm is taken. If only redundant contacts are the reason, v has a
// derivative, and does not depend on this choice.
#pragma once

#include <Eigen/QR>
#include <cstdint>
#include <vector>

#include "friction/impulse_problem.h"
#include "friction/linear_law.h"
#include "friction/smooth_path.h"
#include "linalg/lu.h"

namespace lcp::friction {

/// Where impulses that change without breaking the linearised law change a velocity by more than this, both in the
/// units of Impulses and relative to the change of the impulses, v is not unique.
constexpr double kUnique = 1e-4;

struct Solution {
  const double* v;      ///< [n]
  const double* gamma;  ///< [3 c]
  const double* u;      ///< [3 c], J v + b
};

/// The solution depends on the data through p, s and mu alone, where
///   dp = A dv_free - dA (v - v_free) + dJ' gamma,  ds = dJ v + db.
/// In forward mode these are their derivatives in a direction, and in reverse mode the gradients with respect to them.
template <class Number>
struct Data {
  Number* p;   ///< [n]
  Number* s;   ///< [3 c]
  Number* mu;  ///< [c]
};

/// How well a Solution fulfils the law, and how its derivative is defined.
struct Certificate {
  double residual;  ///< the larger of Impulses::residual and |D (A (v - v_free) - J' gamma)| / max(|D A v_free|, |D J'
                    ///< gamma|), D = diag(A)^-1/2
  /// The least distance of a contact to a change of its state, relative to max |J v_free + b|: u_n of a contact that is
  /// apart, d gamma_n of the others and for stick the distance of d gamma to the surface of the cone, for slide |u_t|.
  /// Infinity without contacts.
  double margin;
  std::int64_t rank;  ///< of N
  bool unique;        ///< whether no change of impulses that the law leaves free moves a body
};

class Derivative {
 public:
  /// rank_tolerance: singular values of N below this part of the largest are 0 but for rounding, and so is h_n - u_n of
  /// a contact below this part of the largest |h| or |u|.
  /// smooth: the points are those of the smooth path.
  Derivative(Eigen::Index n, Eigen::Index contacts, double rank_tolerance, bool smooth = false);

  /// The gradients of a function of the data for the gradients g of the solution, [n], [3 c] and [3 c]. Of problem,
  /// v_free and b are not read. Where the solution has a NaN, because the problem was not solved, all results are 0 if
  /// g is 0, else NaN.
  ///   same: the problem and the solution are those of the last call, so that its matrices are used again.
  void adjoint(const Problem& problem, const Solution& at, const Solution& g, const Data<double>& result,
               bool same = false);

  /// dv [n] and dgamma [3 c] for the derivatives d of the data. The same holds as for the adjoint.
  void tangent(const Problem& problem, const Solution& at, const Data<const double>& d, double* dv, double* dgamma,
               bool same = false);

  /// False, without a certificate, where the problem is not well_posed, A is not positive definite, or the solution is
  /// not finite.
  bool certify(const Problem& problem, const Solution& at, Certificate& result);

 private:
  // The matrix whose factors lu_ or factors_ has.
  enum class Factored { kNone, kN, kTransposed };

  bool linearize(const Problem& problem, const Solution& at);
  bool is_defined(const Problem& problem, const Solution& at);
  void solve(Factored matrix);
  bool unique() const;

  Eigen::Index n_, contacts_;
  double rank_tolerance_;
  bool smooth_;
  ImpulseProblem problem_;
  Impulses impulses_ = {};
  bool is_defined_ = false;  // of the last problem
  Factored factored_ = Factored::kNone;
  bool is_regular_ = false;
  linalg::Lu lu_;                                                    // of a regular matrix
  Eigen::CompleteOrthogonalDecomposition<Eigen::MatrixXd> factors_;  // of a singular one
  std::vector<double> none_, h_, u_;
  std::vector<State> states_;
  std::vector<LinearLaw> linear_;                 // of contacts that are not apart
  std::vector<int> touching_;                     // the contacts that are not apart
  Eigen::MatrixXd N_;                             // of these contacts, with rows of size 1
  Eigen::VectorXd rows_;                          // by which the rows of N were multiplied
  contact::Vector push_, solved_, y_, x_, work_;  // x_: of solve
};

}  // namespace lcp::friction
