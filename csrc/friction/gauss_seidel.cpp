#include "friction/gauss_seidel.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

namespace lcp::friction {
namespace {

constexpr int kMostSteps = 100;
// The method of Newton ends with a step below this part of the root, since the error after it is about its square.
constexpr double kLastStep = 1e-9;
constexpr double kWiden = 8;  // a bound that is not known yet is looked for at multiples of this factor
constexpr double kRounding = 1e-15;

// The slide of one contact. Where u_t = -a g_t with a >= 0 and u_n = 0, the friction g_t(a) and the pressure g_n(a) are
// rational functions of a, and the contact slides where |g_t| = mu g_n. The ratio of both sides is nearly linear in a.
class Slide {
 public:
  Slide(const double* W, int stride, const double* q, double mu) : mu_(mu), q_n_(q[2]) {
    const double* normal = W + static_cast<std::ptrdiff_t>(2) * stride;
    for (int i = 0; i < 2; ++i) along_[i] = normal[i];
    inverse_ = 1 / normal[2];
    // The tangents alone, with the normal impulse eliminated.
    s_[0] = W[0] - normal[0] * normal[0] * inverse_;
    s_[1] = W[1] - normal[0] * normal[1] * inverse_;
    s_[2] = W[stride + 1] - normal[1] * normal[1] * inverse_;
    for (int i = 0; i < 2; ++i) p_[i] = q[i] - normal[i] * q[2] * inverse_;
  }

  double trace() const { return s_[0] + s_[2]; }
  bool regular() const { return s_[0] * s_[2] - s_[1] * s_[1] > kRounding * trace() * trace(); }

  /// g(a), mu g_n / |g_t| - 1, which is negative where the friction is too large for the cone, and its slope.
  struct Value {
    double excess, slope;
  };
  Value operator()(double a, double* g) const {
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
  double mu_, q_n_, inverse_;
  double along_[2], s_[3], p_[2];
};

}  // namespace

void solve_one_contact(const double* W, int stride, const double* q, double mu, double* g) {
  std::fill_n(g, 3, 0.0);
  const double normal = W[2 * stride + 2];
  if (q[2] >= 0 || !(normal > 0)) return;
  if (mu == 0) return static_cast<void>(g[2] = -q[2] / normal);
  const Slide slide(W, stride, q, mu);
  if (slide.regular() && slide(0, g).excess >= 0) return;  // it sticks
  double a = slide.trace() > 0 ? slide.trace() : normal, low = 0, high = std::numeric_limits<double>::infinity();
  bool last = false;
  for (int steps = 0; steps < kMostSteps; ++steps) {
    const Slide::Value at = slide(a, g);
    if (last || !std::isfinite(at.excess)) break;
    (at.excess < 0 ? low : high) = a;
    double next = a - at.excess / at.slope;
    last = std::abs(next - a) <= kLastStep * a;
    if (!last && !(next > low && next < high)) {
      next = low == 0 ? high / kWiden : std::isinf(high) ? low * kWiden : (low + high) / 2;
    }
    a = next;
  }
  const double size = std::sqrt(g[0] * g[0] + g[1] * g[1]);
  g[2] = std::max(g[2], 0.0);
  for (int i = 0; i < 2; ++i) g[i] = size > 0 ? g[i] * mu * g[2] / size : 0;
}

GaussSeidel::GaussSeidel(int contacts) : u_(3 * contacts) {}

void GaussSeidel::sweep(const Impulses& problem, int sweeps, double* h) {
  const int size = problem.size(), contacts = problem.contacts;
  problem.velocities(h, u_.data());
  for (int s = 0; s < sweeps; ++s) {
    for (int c = 0; c < contacts; ++c) {
      const int k = s % 2 == 0 ? c : contacts - 1 - c, first = 3 * k;
      const double* rows = problem.W + static_cast<std::size_t>(first) * size;
      double W[9], q[3], g[3];
      for (int i = 0; i < 3; ++i) {
        q[i] = u_[first + i];
        for (int j = 0; j < 3; ++j) {
          W[3 * i + j] = rows[static_cast<std::size_t>(i) * size + first + j];
          q[i] -= W[3 * i + j] * h[first + j];
        }
      }
      solve_one_contact(W, 3, q, problem.mu[k], g);
      for (int j = 0; j < 3; ++j) {
        const double change = g[j] - h[first + j];
        h[first + j] = g[j];
        if (change == 0) continue;
        const double* row = rows + static_cast<std::size_t>(j) * size;  // W is symmetric
        for (int i = 0; i < size; ++i) u_[i] += row[i] * change;
      }
    }
  }
}

}  // namespace lcp::friction
