#include "contact/cone.h"

namespace lcp::contact {

using Eigen::Matrix3d;
using Eigen::Vector2d;
using Eigen::Vector3d;

Projection project(const Vector3d& y, const Law& law) {
  const double slip = y.head<2>().stableNorm();
  const double ratio = law.tangent / law.normal;
  if (y.z() <= -law.mu * ratio * slip) return {Vector3d::Zero(), Region::kSeparated};
  if (law.mu == 0) return {{0, 0, y.z()}, Region::kSlide};
  if (slip <= law.mu * y.z()) return {y, Region::kStick};
  const double normal = (y.z() + law.mu * ratio * slip) / (1 + law.mu * law.mu * ratio);
  const double scale = law.mu * normal / slip;
  return {{scale * y.x(), scale * y.y(), normal}, Region::kSlide};
}

Matrix3d projected_compliance(const Vector3d& y, const Projection& at, const Law& law) {
  Matrix3d K = Matrix3d::Zero();
  if (at.region == Region::kSeparated) return K;
  if (at.region == Region::kStick) {
    K.diagonal() << 1 / law.tangent, 1 / law.tangent, 1 / law.normal;
    return K;
  }
  const double slip = y.head<2>().stableNorm();
  const double share = 1 / (law.normal + law.mu * law.mu * law.tangent);
  K(2, 2) = share;
  if (law.mu == 0) return K;
  const Vector2d along = y.head<2>() / slip;
  const Eigen::Matrix2d both = along * along.transpose();
  const double around = law.mu * at.gamma.z() / (slip * law.tangent);
  K.topLeftCorner<2, 2>() = around * (Eigen::Matrix2d::Identity() - both) + law.mu * law.mu * share * both;
  K.topRightCorner<2, 1>() = law.mu * share * along;
  K.bottomLeftCorner<1, 2>() = law.mu * share * along.transpose();
  return K;
}

// P depends on R and mu only where the contact slides: gamma_n = (y_n + mu a s) / (1 + mu^2 a) and
// gamma_t = mu gamma_n y_t / s, with a = R_t / R_n and s = |y_t|.
Vector3d law_gradient(const Vector3d& y, const Projection& at, const Law& law, const Vector3d& g) {
  if (at.region != Region::kSlide) return Vector3d::Zero();
  const double slip = y.head<2>().stableNorm(), normal = at.gamma.z();
  const double ratio = law.tangent / law.normal, share = 1 / (1 + law.mu * law.mu * ratio);
  const double along = slip > 0 ? y.head<2>().dot(g.head<2>()) / slip : 0;
  const double of_normal = law.mu * along + g.z();
  const double of_ratio = of_normal * law.mu * share * (slip - law.mu * normal);
  const double of_mu = of_normal * ratio * share * (slip - 2 * law.mu * normal) + normal * along;
  return {of_ratio / law.normal, -of_ratio * ratio / law.normal, of_mu};
}

}  // namespace lcp::contact
