#include "contact/cone.h"

#include <algorithm>
#include <cmath>

namespace lcp::contact {

using Eigen::Vector3d;

namespace {

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

// y_n and mu (R_t / R_n) |y_t| cancel; their sum is computed as if in twice the precision.
Projection project(const Vector3d& y, const Vector3d& low, const Law& law) {
  const double slip = slip_of(y), slope = law.mu * (law.tangent / law.normal);
  const double product = slope * slip, sum = y.z() + product;
  const double error = sum_error(y.z(), product, sum) + product_error(slope, slip, product);
  return project(y, slip, sum + (error + low.z() + slope * slip_error(y, low, slip)), law);
}

}  // namespace lcp::contact
