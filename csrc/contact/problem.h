// Convex compliant contact: the velocities of bodies that touch at c points.
//
//   v = argmin |v - v_free|_A^2 / 2 + sum_k |P_k(y_k)|_R^2 / 2,   y = -R^-1 (J v - v_hat),   gamma = P(y)
//
// where P projects on the friction cones of cone.h. The objective is strictly convex; its gradient is
// A (v - v_free) - J' gamma, and its Hessian is A + J' P'(y) R^-1 J [CPH].
//
//   [CPH] Castro, Permenter, Han: An unconstrained convex formulation of compliant contact, IEEE T-RO 39, 2023.
#pragma once

#include <algorithm>
#include <cmath>

#include "contact/cone.h"

namespace lcp::contact {

/// Numbers that should be equal may differ by this part of the larger one: by more than the rounding of float32 data,
/// and by less than a mistake.
inline constexpr double kMaxAsymmetry = 1e-3;

/// The law of a contact with the regularisations R, [3].
EIGEN_DEVICE_FUNC inline Law law_of(const double* R, double mu) { return {mu, (R[0] + R[1]) / 2, R[2]}; }

/// Whether these finite numbers are in their ranges.
EIGEN_DEVICE_FUNC inline bool is_valid_law(const double* R, double mu) {
  return R[0] > 0 && R[1] > 0 && R[2] > 0 && std::abs(R[0] - R[1]) <= kMaxAsymmetry * std::max(R[0], R[1]) && mu >= 0;
}

/// One problem of n velocities and c contacts, in row-major arrays that the caller owns. A and its transpose may differ
/// by kMaxAsymmetry of the largest entry, and so may the regularisations of the two tangents of a contact; their means
/// are used.
struct Problem {
  const double* A;       ///< [n, n], symmetric and positive definite
  const double* v_free;  ///< [n]
  const double* J;       ///< [3 c, n], of each contact (t1, t2, n)
  const double* v_hat;   ///< [3 c]
  const double* R;       ///< [3 c], > 0
  const double* mu;      ///< [c], >= 0

  Law law(Eigen::Index contact) const { return law_of(R + 3 * contact, mu[contact]); }
};

/// Whether all numbers are finite.
bool finite(const double* x, Eigen::Index size);

/// Whether A, [n, n], and its transpose differ by at most kMaxAsymmetry of the largest entry.
bool symmetric(const double* A, Eigen::Index n);

/// Whether all numbers are finite and within their ranges, and A is symmetric. It does not check that A is positive
/// definite.
bool well_posed(const Problem& problem, Eigen::Index n, Eigen::Index contacts);

}  // namespace lcp::contact
