// The distance of a contact to Coulomb's law, for the CPU and for GPUs.
#pragma once

#include <Eigen/Core>
#include <cmath>
#include <limits>

namespace lcp::friction {

/// The coefficient of friction with which the methods replace larger ones, including infinity. A contact that slides
/// then has a normal impulse of 1e-13 of its friction, in place of none: less than any tolerance, but more than
/// round-off. law_error has the true coefficient.
inline constexpr double kLargestFriction = 1e13;

/// The rounding errors of a sum of some ten terms, such as a component of J v + b, relative to the sum of their sizes.
inline constexpr double kRounding = 16 * std::numeric_limits<double>::epsilon();

/// The distance of an impulse h and a velocity u, [3], in the same unit, to impulses and velocities that obey Coulomb's
/// law: h and u obey it after changes of this size. The result is the lesser one of two distances:
///
///   apart   the larger one of |h| and the penetration -u_n
///   touch   the largest one of |u_n|, the distance of h to the cone |h_t| <= mu h_n, and the least of
///             - |u_t|, for stick;
///             - the distance of h to the ray (-mu u_t / |u_t|, 1) on which friction opposes the slip;
///             - the larger one of the distance of h to the surface of the cone and the part of u_t across the friction
///
/// The result, whatever mu is, bounds the penetration, a negative h_n, the distance of h to the cone, and the lesser
/// one of |h_n| and |u_n|. At mu = infinity the cone is the half space h_n >= 0, and the ray is -u_t / |u_t|. The
/// result is NaN where a number is NaN.
EIGEN_DEVICE_FUNC inline double law_error(const double* h, const double* u, double mu) {
  const double sum = h[0] + h[1] + h[2] + u[0] + u[1] + u[2];
  if (std::isnan(sum)) return sum;
  const auto larger = [](double a, double b) { return a < b ? b : a; };
  const auto lesser = [](double a, double b) { return b < a ? b : a; };
  const double friction = std::sqrt(h[0] * h[0] + h[1] * h[1]), slip = std::sqrt(u[0] * u[0] + u[1] * u[1]);
  const double apart = larger(std::sqrt(friction * friction + h[2] * h[2]), -u[2]);
  const double touch = std::abs(u[2]);
  if (apart <= touch) return apart;
  // The cone is |h_t| tangent <= h_n normal with tangent^2 + normal^2 = 1.
  const double inverse = 1 / mu;
  const double tangent = mu > 1 ? inverse / std::sqrt(1 + inverse * inverse) : 1 / std::sqrt(1 + mu * mu);
  const double normal = mu > 1 ? 1 / std::sqrt(1 + inverse * inverse) : mu * tangent;
  const double outside = friction * tangent - h[2] * normal;  // < 0 within the cone
  const double to_cone = larger(outside, -h[2]);
  const double along = h[0] * u[0] + h[1] * u[1];  // |h_t| |u_t| times the cosine of their angle
  double sliding = slip;
  if (slip > 0) {
    // The distance of h to the ray of friction.
    const double across = (h[0] * u[1] - h[1] * u[0]) / slip;
    const double on_ray = h[2] * tangent - along / slip * normal, off_ray = along / slip * tangent + h[2] * normal;
    const double to_ray = std::sqrt(across * across + off_ray * off_ray + (on_ray < 0 ? on_ray * on_ray : 0));
    sliding = lesser(sliding, to_ray);
    if (along < 0) sliding = lesser(sliding, larger(std::abs(outside), std::abs(across) * slip / friction));
  }
  return lesser(apart, larger(larger(touch, to_cone), sliding));
}

}  // namespace lcp::friction
