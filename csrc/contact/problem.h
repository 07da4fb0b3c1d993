// Convex compliant contact: the velocities of bodies that touch at c points.
//
//   v = argmin |v - v_free|_A^2 / 2 + sum_k |P_k(y_k)|_R^2 / 2,   y = -R^-1 (J v - v_hat),   gamma = P(y)
//
// with the cones of cone.h: strictly convex, of which the gradient is A (v - v_free) - J' gamma and the Hessian
// A + J' P'(y) R^-1 J [CPH].
#pragma once

#include "contact/cone.h"

namespace lcp::contact {

/// One problem of n velocities and c contacts, in row-major arrays that somebody else owns. What is to be equal, A and
/// its transpose and the regularisation of both tangents, may differ by 1e-3 of the largest: the mean is what counts.
struct Problem {
  const double* A;       ///< [n, n], symmetric and positive definite
  const double* v_free;  ///< [n]
  const double* J;       ///< [3 c, n], of each contact (t1, t2, n)
  const double* v_hat;   ///< [3 c]
  const double* R;       ///< [3 c], > 0
  const double* mu;      ///< [c], >= 0

  Law law(Eigen::Index contact) const {
    const double* own = R + 3 * contact;
    return {mu[contact], (own[0] + own[1]) / 2, own[2]};
  }
};

/// Whether all numbers are finite and within their ranges; of A that it is symmetric, not that it is positive definite.
bool well_posed(const Problem& problem, Eigen::Index n, Eigen::Index contacts);

}  // namespace lcp::contact
