// Derivatives of contact with friction at points of the smooth paths to its solutions.
#pragma once

#include <memory>
#include <vector>

#include "linalg/lu.h"
#include "rigid/contact_law.h"

namespace lcp::rigid {

/// On a path, the impulses of each contact follow from its velocity, dgamma = e dmu - K du with a 3 x 3 matrix K, so
/// that
///
///   (A + J' K J) dv = p + J' (e dmu - K s),   du = J dv + s.
///
/// Newton's method to a point of the path solves the same systems, which have as many unknowns as the bodies have
/// velocities, however many contacts there are.
class SmoothSystem {
 public:
  SmoothSystem(int n, int contacts);

  /// A is used by its symmetric part. False where it is singular.
  bool set(const ContactProblem& problem);

  /// K: [c, 3, 3]. False where the matrix is singular.
  bool factor(const double* K);
  void solve(double* x) const { lu_.solve(x); }                        ///< x := (A + J' K J)^-1 x
  void solve_transposed(double* x) const { lu_.solve_transposed(x); }  ///< of the transposed matrix
  void solve_mass(double* x) const { mass_.solve(x); }                 ///< x := A^-1 x

  void to_contacts(const double* v, double* u) const;        ///< u := J v
  void add_to_bodies(const double* gamma, double* p) const;  ///< p += J' gamma

  /// The mean of the diagonal of J A^-1 J' of contact k, as if A were diagonal: contacts are alike in its units.
  double response(int k) const { return response_[k]; }

 private:
  int n_, contacts_;
  linalg::Lu mass_, lu_;
  std::vector<double> A_, response_, entries_;
  std::vector<int> columns_, first_;  // the columns of J that are not 0, of contact k those from first_[k] on
};

/// That of a pyramid is the derivative of a point of the central path, see solver/path_derivative.h, without the
/// friction of contacts whose mu is 0, which have no such point; that of the exact cone the derivative of a point of
/// friction/smooth_path.h. Allocates for the first problem with as many contacts as none had before.
std::unique_ptr<ContactDerivative> make_smooth_derivative(const Scene& scene);

}  // namespace lcp::rigid
