// The derivative of the solution of a Problem of contact with friction, by the implicit function theorem.
//
// The state of a contact ties the change of its impulse to the change of its velocity by C du + D dh = E dmu, in the
// units of Impulses.
//
//   apart         C = 0, D = I
//   stick, slide  LinearLaw
//   smooth        SmoothLaw, at a point of the smooth path
//
// A row without slip has C = 1 and D = 0. The impulse of a row at a bound changes with this bound, as if it were given.
//
// The change of the velocities is du = r + W dh with their change r at constant impulses. So N dh = E dmu - C r with N
// = C W + D. Where N is singular, the least-squares solution dh of least norm is taken. If redundant contacts are the
// only reason, v has a derivative, which does not depend on this choice.
#pragma once

#include <Eigen/QR>
#include <cstdint>
#include <vector>

#include "friction/impulse_problem.h"
#include "friction/linear_law.h"
#include "friction/smooth_path.h"
#include "linalg/lu.h"

namespace lcp::friction {

/// The least velocity that makes v not unique. It is the change of a velocity by impulses that change without breaking
/// the linearised law. It is in the units of Impulses, relative to the change of the impulses.
constexpr double kUnique = 1e-4;

struct Solution {
  const double* v;      ///< [n]
  const double* gamma;  ///< [3 c + k]
  const double* u;      ///< [3 c + k], J v + b, of rows with their compliance
};

/// The solution depends on the data through p, s, mu and the bounds alone, where
///   dp = A dv_free - dA (v - v_free) + dJ' gamma,  ds = dJ v + db + dcompliance gamma.
/// In forward mode these are their derivatives in a direction, and in reverse mode the gradients with respect to them.
template <class Number>
struct Data {
  Number* p;                ///< [n]
  Number* s;                ///< [3 c + k]
  Number* mu;               ///< [c]
  Number* lower = nullptr;  ///< [k]
  Number* upper = nullptr;  ///< [k]
};

/// The accuracy with which a Solution fulfils the law, and how well its derivative is defined.
struct Certificate {
  double residual;  ///< the larger of Impulses::residual and |D (A (v - v_free) - J' gamma)| / max(|D A v_free|, |D J'
                    ///< gamma|), D = diag(A)^-1/2
  /// The least distance of a contact to a change of its state, relative to max |J v_free + b|; infinity without
  /// contacts. For a contact that is apart it is u_n. For stick it is the smaller of d gamma_n and the distance of d
  /// gamma to the surface of the cone. For slide it is the smaller of d gamma_n and, where mu > 0, |u_t|. For a row it
  /// is |s| at a bound and else the distance of d gamma to the nearest bound, both times the row_weight of Impulses.
  double margin;
  std::int64_t rank;  ///< the rank of N, with D = I for contacts that are apart
  bool unique;        ///< whether no change of impulses that the law leaves free moves a body
};

class Derivative {
 public:
  /// rank_tolerance: the share of the largest below which a singular value of N counts as a rounding error of 0. A
  /// contact's h_n - u_n below this share of the largest |h| or |u| counts as one, too. smooth: whether the points are
  /// those of the smooth path, where there are no rows.
  Derivative(Eigen::Index n, Eigen::Index contacts, double rank_tolerance, bool smooth = false, Eigen::Index rows = 0);

  /// The gradients of a function of the data for the gradients g of the solution, [n], [3 c + k] and [3 c + k].
  /// problem.v_free and problem.b are not read. Where the solution has a NaN, because the problem was not solved, all
  /// results are 0 if g is 0, else NaN.
  ///   same: whether the problem and the solution are those of the last call, so that its matrices are used again.
  void adjoint(const Problem& problem, const Solution& at, const Solution& g, const Data<double>& result,
               bool same = false);

  /// dv [n] and dgamma [3 c] for the derivatives d of the data. The remarks on the adjoint hold here, too.
  void tangent(const Problem& problem, const Solution& at, const Data<const double>& d, double* dv, double* dgamma,
               bool same = false);

  /// The derivative of v in p, [n, n], and in s, [n, 3 c + k]; NaN where the problem was not solved. The remarks on the
  /// adjoint hold here, too.
  void jacobian(const Problem& problem, const Solution& at, Eigen::MatrixXd& by_p, Eigen::MatrixXd& by_s,
                bool same = false);

  /// Returns false, without a certificate, where the problem is not well_posed, A is not positive definite, or the
  /// solution is not finite.
  bool certify(const Problem& problem, const Solution& at, Certificate& result);

 private:
  // The matrix whose factors lu_ or factors_ has.
  enum class Factored { kNone, kN, kTransposed };

  // How much the impulse of a row at a bound changes with its bounds.
  struct Bound {
    int row;
    double of_lower, of_upper;
  };

  bool linearize(const Problem& problem, const Solution& at);
  void find_row_states(double largest_number);
  // The entry of h and u of unknown a.
  int entry(int a) const {
    return a < 3 * num_touching() ? 3 * touching_[a / 3] + a % 3 : free_[a - 3 * num_touching()];
  }
  int num_touching() const { return static_cast<int>(touching_.size()); }
  bool is_defined(const Problem& problem, const Solution& at);
  void solve(Factored matrix);
  bool unique() const;

  Eigen::Index n_, contacts_, size_;  // size_: 3 c + k
  double rank_tolerance_;
  bool smooth_;
  ImpulseProblem problem_;
  Impulses impulses_ = {};
  bool is_defined_ = false;  // whether the last problem has a derivative
  Factored factored_ = Factored::kNone;
  bool is_regular_ = false;
  linalg::Lu lu_;                                                    // factors of a regular matrix
  Eigen::CompleteOrthogonalDecomposition<Eigen::MatrixXd> factors_;  // factors of a singular matrix
  std::vector<double> none_, h_, u_;
  std::vector<State> states_;
  std::vector<LinearLaw> linear_;                 // the laws of contacts that are not apart
  std::vector<int> touching_;                     // the contacts that are not apart
  std::vector<int> free_;                         // the entries of the rows without slip
  std::vector<Bound> bound_;                      // the other rows
  Eigen::MatrixXd N_;                             // N of touching_ and free_, with rows of size 1
  Eigen::VectorXd rows_;                          // the factors by which the rows of N were multiplied
  contact::Vector push_, solved_, y_, x_, work_;  // x_: argument and result of solve
  Eigen::MatrixXd J_, moved_, response_;          // of jacobian
};

}  // namespace lcp::friction
