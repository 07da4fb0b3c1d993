// The friction cone of one contact, C = { (g_t1, g_t2, g_n) : |g_t| <= mu g_n }, and the projection on it.
//
//   [CPH] Castro, Permenter, Han: An unconstrained convex formulation of compliant contact, IEEE T-RO 39, 2023.
#pragma once

#include <Eigen/Core>
#include <cstdint>

namespace lcp::contact {

enum class Region : std::int8_t {
  kSeparated = 0,  ///< y_n <= -mu (R_t / R_n) |y_t|: the contact is separated, without an impulse
  kSlide = 1,      ///< neither of the others: the impulse is on the surface of the cone
  kStick = 2,      ///< |y_t| <= mu y_n: y itself is in the cone
};

/// The friction coefficient of a contact, and its regularisation R = diag(tangent, tangent, normal) > 0, 1/kg.
struct Law {
  double mu, tangent, normal;
};

/// P(y) = argmin over g in C of (g - y)' R (g - y) / 2 [CPH, sec. IV].
struct Projection {
  Eigen::Vector3d gamma;
  Region region;
};
Projection project(const Eigen::Vector3d& y, const Law& law);

/// P(y + low), where low is of the size of the rounding errors of y. A contact that slides has an impulse that is
/// smaller than y by the factor R / w, with the diagonal w of J A^-1 J', so that y alone has few of its digits.
Projection project(const Eigen::Vector3d& y, const Eigen::Vector3d& low, const Law& law);

/// K = P'(y) R^-1, which is symmetric and positive semidefinite. On the boundary of two regions it is the derivative of
/// the region whose inequality holds there. Where mu = 0, only the entry of the normal is not 0.
Eigen::Matrix3d projected_compliance(const Eigen::Vector3d& y, const Projection& at, const Law& law);

/// The gradients with respect to R_t, R_n and mu, in this order, for a gradient g of P(y), while y stays the same.
Eigen::Vector3d law_gradient(const Eigen::Vector3d& y, const Projection& at, const Law& law, const Eigen::Vector3d& g);

}  // namespace lcp::contact
