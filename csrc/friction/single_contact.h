// The exact solution of a single contact with Coulomb friction, on the CPU and on GPUs.
#pragma once

#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

namespace lcp::friction {

/// The slide of one contact. Where u_t = -a g_t with a >= 0 and u_n = 0, the friction g_t(a) and the pressure g_n(a)
/// are rational functions of a. The contact slides where |g_t| = mu g_n. The ratio of both sides is nearly linear in a.
class Slide {
 public:
  EIGEN_DEVICE_FUNC Slide(const double* W, int stride, const double* q, double mu) : mu_(mu), q_n_(q[2]) {
    const double* normal = W + static_cast<std::ptrdiff_t>(2) * stride;
    for (int i = 0; i < 2; ++i) along_[i] = normal[i];
    inverse_ = 1 / normal[2];
    // The system of the tangents alone, with the normal impulse eliminated.
    s_[0] = W[0] - normal[0] * normal[0] * inverse_;
    s_[1] = W[1] - normal[0] * normal[1] * inverse_;
    s_[2] = W[stride + 1] - normal[1] * normal[1] * inverse_;
    for (int i = 0; i < 2; ++i) p_[i] = q[i] - normal[i] * q[2] * inverse_;
  }

  EIGEN_DEVICE_FUNC double trace() const { return s_[0] + s_[2]; }
  EIGEN_DEVICE_FUNC bool regular() const { return s_[0] * s_[2] - s_[1] * s_[1] > kRounding * trace() * trace(); }

  /// g(a), mu g_n / |g_t| - 1, which is negative where the friction is too large for the cone, and its slope.
  struct Value {
    double excess, slope;
  };
  EIGEN_DEVICE_FUNC Value operator()(double a, double* g) const {
    const double inverse = 1 / ((s_[0] + a) * (s_[2] + a) - s_[1] * s_[1]);
    const auto solve = [&](const double* x, double* y) {  // y = -(S + a I)^-1 x
      y[0] = (s_[1] * x[1] - (s_[2] + a) * x[0]) * inverse;
      y[1] = (s_[1] * x[0] - (s_[0] + a) * x[1]) * inverse;
    };
    double dg[2];
    solve(p_, g);
    solve(g, dg);
    g[2] = -(q_n_ + along_[0] * g[0] + along_[1] * g[1]) * inverse_;
    const double dg_n = -(along_[0] * dg[0] + along_[1] * dg[1]) * inverse_;
    const double square = g[0] * g[0] + g[1] * g[1], part = mu_ / std::sqrt(square);
    return {part * g[2] - 1, part * (dg_n - g[2] * (g[0] * dg[0] + g[1] * dg[1]) / square)};
  }

 private:
  static constexpr double kRounding = 1e-15;

  double mu_, q_n_, inverse_;
  double along_[2], s_[3], p_[2];
};

/// The impulse g of a single contact with u = W g + q; always exists for a positive definite W.
///   W: 3 x 3, row-major, rows `stride` numbers apart. q: 3.
EIGEN_DEVICE_FUNC inline void solve_one_contact(const double* W, int stride, const double* q, double mu, double* g) {
  constexpr int most_steps = 100;
  // The method of Newton ends with a step below this part of the root, since the error after it is about its square.
  constexpr double last_step = 1e-9;
  constexpr double widen = 8;  // a bound that is not known yet is looked for at multiples of this factor
  g[0] = g[1] = g[2] = 0;
  const double normal = W[2 * stride + 2];
  if (q[2] >= 0 || !(normal > 0)) return;
  if (mu == 0) return static_cast<void>(g[2] = -q[2] / normal);
  const Slide slide(W, stride, q, mu);
  if (slide.regular() && slide(0, g).excess >= 0) return;  // it sticks
  double a = slide.trace() > 0 ? slide.trace() : normal, low = 0, high = std::numeric_limits<double>::infinity();
  bool last = false;
  for (int steps = 0; steps < most_steps; ++steps) {
    const Slide::Value at = slide(a, g);
    if (last || !std::isfinite(at.excess)) break;
    (at.excess < 0 ? low : high) = a;
    double next = a - at.excess / at.slope;
    last = std::abs(next - a) <= last_step * a;
    if (!last && !(next > low && next < high)) {
      next = low == 0 ? high / widen : std::isinf(high) ? low * widen : (low + high) / 2;
    }
    a = next;
  }
  const double size = std::sqrt(g[0] * g[0] + g[1] * g[1]);
  g[2] = std::max(g[2], 0.0);
  for (int i = 0; i < 2; ++i) g[i] = size > 0 ? g[i] * mu * g[2] / size : 0;
}

}  // namespace lcp::friction
