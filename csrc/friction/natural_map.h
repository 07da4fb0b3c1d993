// The natural map of one contact with Coulomb friction, for the CPU and for GPUs.
#pragma once

#include <Eigen/Core>
#include <cmath>

namespace lcp::friction {

/// The largest component of |h - P(h - u - mu |u_t| e_n)|, P the projection on the cone |h_t| <= mu h_n: 0 at a
/// solution. NaN where a number is.
///   h, u: [3], impulse and velocity.
EIGEN_DEVICE_FUNC inline double natural_error(const double* h, const double* u, double mu) {
  const double x[3] = {h[0] - u[0], h[1] - u[1], h[2] - u[2] - mu * std::sqrt(u[0] * u[0] + u[1] * u[1])};
  const double slip = std::sqrt(x[0] * x[0] + x[1] * x[1]);
  // The projection on the cone is (scale x_t, normal).
  double scale = 1, normal = x[2];
  if (x[2] <= -mu * slip) {
    scale = normal = 0;
  } else if (slip > mu * x[2]) {
    normal = (x[2] + mu * slip) / (1 + mu * mu);
    scale = mu * normal / slip;
  }
  const double errors[3] = {h[0] - scale * x[0], h[1] - scale * x[1], h[2] - normal};
  double worst = 0;
  for (const double error : errors) {
    if (!(std::abs(error) <= worst) && !std::isnan(worst)) worst = std::abs(error);
  }
  return worst;
}

}  // namespace lcp::friction
