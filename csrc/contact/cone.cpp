#include "contact/cone.h"

namespace lcp::contact {

using Eigen::Matrix3d;
using Eigen::Vector2d;
using Eigen::Vector3d;

Projection project(const Vector3d& y, const Law& law) {
  const double slip = y.head<2>().stableNorm();
  const double ratio = law.tangent / law.normal;
  if (y.z() <= -law.mu * ratio * slip) return {Vector3d::Zero(), Region::kNone};
  if (law.mu == 0) return {{0, 0, y.z()}, Region::kSlide};
  if (slip <= law.mu * y.z()) return {y, Region::kStick};
  const double normal = (y.z() + law.mu * ratio * slip) / (1 + law.mu * law.mu * ratio);
  const double scale = law.mu * normal / slip;
  return {{scale * y.x(), scale * y.y(), normal}, Region::kSlide};
}

Matrix3d projected_compliance(const Vector3d& y, const Projection& at, const Law& law) {
  Matrix3d K = Matrix3d::Zero();
  if (at.region == Region::kNone) return K;
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

}  // namespace lcp::contact
