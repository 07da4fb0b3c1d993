#include "contact/cone.h"

#include <algorithm>
#include <cmath>

namespace lcp::contact {

using Eigen::Matrix3d;
using Eigen::Vector2d;
using Eigen::Vector3d;

namespace {

// slip = |y_t|, and excess = y_n + mu (R_t / R_n) |y_t|, which is positive where the contact is not separated.
Projection projection(const Vector3d& y, double slip, double excess, const Law& law) {
  if (excess <= 0) return {Vector3d::Zero(), Region::kSeparated};
  if (law.mu == 0) return {{0, 0, y.z()}, Region::kSlide};
  if (slip <= law.mu * y.z()) return {y, Region::kStick};
  const double ratio = law.tangent / law.normal;
  const double normal = excess / (1 + law.mu * law.mu * ratio);
  const double scale = law.mu * normal / slip;
  return {{scale * y.x(), scale * y.y(), normal}, Region::kSlide};
}

// x y - product for product = x y, rounded.
double product_error(double x, double y, double product) { return std::fma(x, y, -product); }

// x + y - sum for sum = x + y, rounded.
double sum_error(double x, double y, double sum) {
  const double part = sum - x;
  return (x - (sum - part)) + (y - part);
}

// |y_t + low_t| - slip for slip = |y_t|, rounded.
double slip_error(const Vector3d& y, const Vector3d& low, double slip) {
  if (slip == 0) return 0;
  const double large = std::max(std::abs(y.x()), std::abs(y.y())), small = std::min(std::abs(y.x()), std::abs(y.y()));
  const double a = large * large, b = small * small, square = slip * slip;
  const double rest =
      product_error(large, large, a) + product_error(small, small, b) - product_error(slip, slip, square);
  return ((a - square) + b + rest + 2 * y.head<2>().dot(low.head<2>())) / (2 * slip);
}

}  // namespace

Projection project(const Vector3d& y, const Law& law) {
  const double slip = y.head<2>().stableNorm();
  return projection(y, slip, y.z() + law.mu * (law.tangent / law.normal) * slip, law);
}

// The sum of y_n and mu (R_t / R_n) |y_t|, which cancel, as if in twice the precision.
Projection project(const Vector3d& y, const Vector3d& low, const Law& law) {
  const double slip = y.head<2>().stableNorm(), slope = law.mu * (law.tangent / law.normal);
  const double product = slope * slip, sum = y.z() + product;
  const double error = sum_error(y.z(), product, sum) + product_error(slope, slip, product);
  return projection(y, slip, sum + (error + low.z() + slope * slip_error(y, low, slip)), law);
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
