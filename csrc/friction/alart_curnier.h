// The nonsmooth equation of Alart and Curnier, which is equivalent to Coulomb's law, for one contact, on the CPU and on
// GPUs: F = 0 with
//
//   F_n = h_n - max(0, z_n),   F_t = h_t - D(z_t),   z = h - scale u,
//
// and D the projection on the disk of radius mu max(0, z_n).
//
//   [AC]   Alart, Curnier: A mixed formulation for frictional contact problems, CMAME 92, 1991.
#pragma once

#include <Eigen/Core>
#include <cmath>

namespace lcp::friction {

/// The linear equations that a Newton step solves for one contact. The unknowns depend on the contact's state:
///   separate  none, h = 0
///   stick     h = y
///   slide     h = (mu y_1 t + y_2 s, y_1), where s is orthogonal to t
/// Since F is positively homogeneous where no contact changes its state, the equations are u = 0 for stick. For slide
/// they are u_n = 0 and (1 - part) s' h_t + part scale s' u_t = 0.
struct AlartCurnier {
  int unknowns;
  double t[2];  ///< z_t / |z_t|
  double part;  ///< mu z_n / |z_t|
};

/// Finds the equations at h and u, [3], and returns |F|^2.
EIGEN_DEVICE_FUNC inline double linearize(const double* h, const double* u, double mu, double scale, AlartCurnier& at) {
  const double z[3] = {h[0] - scale * u[0], h[1] - scale * u[1], h[2] - scale * u[2]};
  const double slip = std::sqrt(z[0] * z[0] + z[1] * z[1]), radius = mu * z[2];
  double F[3] = {h[0], h[1], h[2]};
  if (!(z[2] > 0)) {
    at.unknowns = 0;
  } else if (radius > 0 && slip <= radius) {
    at.unknowns = 3;
    for (int i = 0; i < 3; ++i) F[i] = scale * u[i];
  } else {
    at = {2, {1, 0}, 0};
    if (slip > 0) at = {2, {z[0] / slip, z[1] / slip}, radius / slip};
    for (int i = 0; i < 2; ++i) F[i] -= radius * at.t[i];
    F[2] = scale * u[2];
  }
  return F[0] * F[0] + F[1] * F[1] + F[2] * F[2];
}

/// The impulse h, [3], of the solution y of the contact's equations.
EIGEN_DEVICE_FUNC inline void impulse_of(const AlartCurnier& at, double mu, const double* y, double* h) {
  h[0] = h[1] = h[2] = 0;
  if (at.unknowns == 3) {
    for (int i = 0; i < 3; ++i) h[i] = y[i];
  } else if (at.unknowns == 2) {
    const double along = mu * y[0];
    h[0] = along * at.t[0] - y[1] * at.t[1];
    h[1] = along * at.t[1] + y[1] * at.t[0];
    h[2] = y[0];
  }
}

}  // namespace lcp::friction
