// The friction cone of one contact, C = { (g_t1, g_t2, g_n) : |g_t| <= mu g_n }, and the nearest point of it.
//
//   [CPH] Castro, Permenter, Han: An unconstrained convex formulation of compliant contact, IEEE T-RO 39, 2023.
#pragma once

#include <Eigen/Core>
#include <cstdint>

namespace lcp::contact {

enum class Region : std::int8_t {
  kNone = 0,   ///< y_n <= -mu (R_t / R_n) |y_t|: no impulse
  kSlide = 1,  ///< between: on the cone's surface
  kStick = 2,  ///< |y_t| <= mu y_n: within the cone
};

/// How a contact gives way: of its friction, and its regularisation R = diag(tangent, tangent, normal) > 0.
struct Law {
  double mu, tangent, normal;
};

/// P(y) = argmin over g in C of (g - y)' R (g - y) / 2 [CPH, sec. IV].
struct Projection {
  Eigen::Vector3d gamma;
  Region region;
};
Projection project(const Eigen::Vector3d& y, const Law& law);

/// P'(y) R^-1, symmetric and positive semidefinite; on the edge of two regions that of the one whose inequality holds.
/// Without friction the tangents give nothing.
Eigen::Matrix3d projected_compliance(const Eigen::Vector3d& y, const Projection& at, const Law& law);

}  // namespace lcp::contact
