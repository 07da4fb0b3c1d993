// The friction cone of one contact, C = { (g_t1, g_t2, g_n) : |g_t| <= mu g_n }, and the projection on it, for the CPU
// and for GPUs.
//
//   [CPH] Castro, Permenter, Han: An unconstrained convex formulation of compliant contact, IEEE T-RO 39, 2023.
#pragma once

#include <Eigen/Core>
#include <algorithm>
#include <cmath>
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

  EIGEN_DEVICE_FUNC Eigen::Vector3d R() const { return {tangent, tangent, normal}; }
};

/// P(y) = argmin over g in C of (g - y)' R (g - y) / 2 [CPH, sec. IV].
struct Projection {
  Eigen::Vector3d gamma;
  Region region;
};

/// |y_t|, without overflow.
EIGEN_DEVICE_FUNC inline double slip_of(const Eigen::Vector3d& y) {
  const double large = std::max(std::abs(y.x()), std::abs(y.y()));
  if (large == 0) return 0;
  const double inverse = 1 / large, first = y.x() * inverse, second = y.y() * inverse;
  return large * std::sqrt(first * first + second * second);
}

/// P(y) for slip = |y_t| and excess = y_n + mu (R_t / R_n) |y_t|, which is positive where the contact is not separated.
EIGEN_DEVICE_FUNC inline Projection project(const Eigen::Vector3d& y, double slip, double excess, const Law& law) {
  if (excess <= 0) return {Eigen::Vector3d::Zero(), Region::kSeparated};
  if (law.mu == 0) return {{0, 0, y.z()}, Region::kSlide};
  if (slip <= law.mu * y.z()) return {y, Region::kStick};
  const double ratio = law.tangent / law.normal;
  const double normal = excess / (1 + law.mu * law.mu * ratio);
  const double scale = law.mu * normal / slip;
  return {{scale * y.x(), scale * y.y(), normal}, Region::kSlide};
}

EIGEN_DEVICE_FUNC inline Projection project(const Eigen::Vector3d& y, const Law& law) {
  const double slip = slip_of(y);
  return project(y, slip, y.z() + law.mu * (law.tangent / law.normal) * slip, law);
}

/// P(y + low), where low is of the size of the rounding errors of y. The impulse of a contact that slides is smaller
/// than y by the factor R / w, with the diagonal w of J A^-1 J'. Without low it would lose most of its digits.
Projection project(const Eigen::Vector3d& y, const Eigen::Vector3d& low, const Law& law);

/// K = P'(y) R^-1, which is symmetric and positive semidefinite. On the boundary of two regions it is the derivative of
/// the region whose inequality holds there. Where mu = 0, only the entry of the normal is not 0.
EIGEN_DEVICE_FUNC inline Eigen::Matrix3d projected_compliance(const Eigen::Vector3d& y, const Projection& at,
                                                              const Law& law) {
  Eigen::Matrix3d K = Eigen::Matrix3d::Zero();
  if (at.region == Region::kSeparated) return K;
  if (at.region == Region::kStick) {
    K.diagonal() << 1 / law.tangent, 1 / law.tangent, 1 / law.normal;
    return K;
  }
  const double slip = slip_of(y);
  const double share = 1 / (law.normal + law.mu * law.mu * law.tangent);
  K(2, 2) = share;
  if (law.mu == 0) return K;
  const Eigen::Vector2d along = y.head<2>() / slip;
  const Eigen::Matrix2d both = along * along.transpose();
  const double around = law.mu * at.gamma.z() / (slip * law.tangent);
  K.topLeftCorner<2, 2>() = around * (Eigen::Matrix2d::Identity() - both) + law.mu * law.mu * share * both;
  K.topRightCorner<2, 1>() = law.mu * share * along;
  K.bottomLeftCorner<1, 2>() = law.mu * share * along.transpose();
  return K;
}

/// The gradients with respect to R_t, R_n and mu, in this order, for a gradient g of P(y) at constant y.
EIGEN_DEVICE_FUNC inline Eigen::Vector3d law_gradient(const Eigen::Vector3d& y, const Projection& at, const Law& law,
                                                      const Eigen::Vector3d& g) {
  // P depends on R and mu only where the contact slides: gamma_n = (y_n + mu a s) / (1 + mu^2 a) and
  // gamma_t = mu gamma_n y_t / s, with a = R_t / R_n and s = |y_t|.
  if (at.region != Region::kSlide) return Eigen::Vector3d::Zero();
  const double slip = slip_of(y), normal = at.gamma.z();
  const double ratio = law.tangent / law.normal, share = 1 / (1 + law.mu * law.mu * ratio);
  const double along = slip > 0 ? y.head<2>().dot(g.head<2>()) / slip : 0;
  const double of_normal = law.mu * along + g.z();
  const double of_ratio = of_normal * law.mu * share * (slip - law.mu * normal);
  const double of_mu = of_normal * ratio * share * (slip - 2 * law.mu * normal) + normal * along;
  return {of_ratio / law.normal, -of_ratio * ratio / law.normal, of_mu};
}

}  // namespace lcp::contact
