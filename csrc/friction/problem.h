// Contact with Coulomb friction: the velocities and impulses of rigid bodies that touch at c points.
//
//   A (v - v_free) = J' gamma,   u = J v + b,   and for each contact, with its K = {|x_t| <= mu x_n},
//   gamma in K,   u + mu |u_t| e_n in the dual cone K*,   the two orthogonal [DSF]
//
// so that a contact takes off (gamma = 0, u_n >= 0), sticks (u = 0) or slides (u_n = 0, gamma_t opposite to u_t).
// Beside the contacts there may be rows, constraints in one dimension by the law of row_law.h. Their velocities and
// impulses stand behind those of the contacts in u, gamma, J and b. A row may be compliant: its velocity is then J v +
// b
// + compliance gamma, as that of a servo whose force falls with the speed and has a range.
//
//   [DSF] De Saxce, Feng: The bipotential method, Mathematical and Computer Modelling 28, 1998.
#pragma once

#include <Eigen/Core>

namespace lcp::friction {

/// One problem of n velocities, c contacts and k rows, in row-major arrays that the caller owns. A and its transpose
/// may differ by 1e-3 of the largest entry; their mean is used.
struct Problem {
  const double* A;                     ///< [n, n], symmetric and positive definite
  const double* v_free;                ///< [n]
  const double* J;                     ///< [3 c + k, n], of each contact (t1, t2, n), and then of each row
  const double* b;                     ///< [3 c + k]
  const double* mu;                    ///< [c], >= 0; infinity for a contact that never slips
  const double* lower = nullptr;       ///< [k], the least impulse of a row; -infinity: none
  const double* upper = nullptr;       ///< [k], the largest impulse of a row, >= lower; infinity: none
  const double* compliance = nullptr;  ///< [k], >= 0; nullptr: 0
};

/// Whether all numbers are within their ranges and, except mu and the bounds, finite, and A is symmetric. It does not
/// check that A is positive definite.
bool well_posed(const Problem& problem, Eigen::Index n, Eigen::Index contacts, Eigen::Index rows = 0);

}  // namespace lcp::friction
