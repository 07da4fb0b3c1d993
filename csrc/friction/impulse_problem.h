// A Problem of contact with friction in the impulses alone, in units in which all contacts are alike.
#pragma once

#include <vector>

#include "contact/system.h"
#include "friction/problem.h"
#include "friction/row_law.h"

namespace lcp::friction {

/// The problem u = W h + q. Contact k has the impulse h_k = gamma_k sqrt(d_k) / unit and the velocity u_k / (sqrt(d_k)
/// unit). d_k is the mean of the diagonal of the contact's block of J A^-1 J', and unit the largest |J v_free + b|. The
/// cones and the law of friction stay the same in these units. The compliance of rows is part of W.
///
/// The impulses and velocities of rows follow, in such units, too, with the diagonal entry as d. Their velocities may
/// be of another kind, such as rad/s. Divided by sqrt(d) and multiplied by row_weight, they become velocities like
/// those of contacts, whatever the units of a row are.
struct Impulses {
  int contacts;
  const double* W;         ///< [3 c + k, 3 c + k], symmetric and positive semidefinite
  const double* q;         ///< [3 c + k]
  const double* mu;        ///< [c], at most kLargestFriction
  const double* given_mu;  ///< [c], the mu of the Problem
  const double* weight;    ///< [c + k], sqrt(d)
  int rows = 0;
  const double* lower = nullptr;       ///< [k]
  const double* upper = nullptr;       ///< [k]
  double row_weight = 1;               ///< the largest weight of a contact; 1 without contacts
  const double* compliance = nullptr;  ///< [k], the part of W that is not J A^-1 J'

  int size() const { return 3 * contacts + rows; }
  /// The contact or the row, counted behind the contacts, of entry i.
  int owner(int i) const { return i < 3 * contacts ? i / 3 : i - 2 * contacts; }

  void velocities(const double* h, double* u) const;  ///< u = W h + q

  /// The largest weight_k law_error(h_k, u_k, mu_k) of a contact or row_weight row_error(h, u, lower, upper) of a row,
  /// 0 at a solution. It is a velocity relative to the largest |J v_free + b|.
  double residual(const double* h, const double* u) const;

  /// Brings the impulses of the rows into their intervals.
  void clamp_rows(double* h) const;
};

/// Makes the Impulses of one Problem after another. Allocates only in the constructor, unless the problem is sparse
/// (contact::AnySystem).
class ImpulseProblem {
 public:
  ImpulseProblem(Eigen::Index n, Eigen::Index contacts, Eigen::Index rows = 0);

  /// Returns false where A is not positive definite. The problem must be well_posed and outlive the use of this object.
  bool set(const Problem& problem);

  const Impulses& impulses() const { return impulses_; }
  contact::System& system() const { return *system_; }  ///< the system of A and J, factored for A^-1
  /// m/s, the largest |J v_free + b|, or 1 where that is 0. Where the intervals of rows do not contain 0, their least
  /// impulses act on v_free. Those that alone would stop compliant rows act, too, and what these change counts as well.
  double unit() const { return unit_; }

  /// The rounding errors of J v_free + b, relative to unit(): kRounding times the largest |J| |v_free| + |b|. Where
  /// bodies move much faster than they approach each other, no v has a smaller residual.
  double rounding() const { return rounding_; }

  /// h of impulses gamma, [3 c + k].
  void scaled(const double* gamma, double* h) const;
  /// gamma [3 c + k], v [n] and u = J v + b [3 c + k] of h. Returns the residual of h at this u.
  double unscaled(const double* h, double* gamma, double* v, double* u);

  /// The effect of h on the motion of the bodies, sqrt(h' W h). It is computed from A and J, since rounding errors of
  /// W could hide it.
  double effect(const double* h);

 private:
  double speed(const contact::Vector& u) const;

  Eigen::Index n_, contacts_, rows_;
  contact::AnySystem systems_;
  contact::System* system_ = nullptr;
  Problem problem_ = {};
  Impulses impulses_ = {};
  double unit_ = 0, rounding_ = 0;
  std::vector<double> W_, q_, weight_, mu_, lower_, upper_, compliance_;
  std::vector<Eigen::Matrix3d> none_;
  contact::Vector column_, row_, u_;
};

}  // namespace lcp::friction
