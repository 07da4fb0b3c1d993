#include "friction/gauss_seidel.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace lcp::friction {
namespace {

// Bounds of the root are moved by this factor until they enclose it.
constexpr double kWiden = 8;
constexpr int kMostSteps = 100;
constexpr double kRounding = 1e-15;

// The slide of one contact. Where u_t = -a g_t with a >= 0 and u_n = 0, the friction g_t(a) and the pressure g_n(a) are
// rational functions of a, and the contact slides where |g_t| = mu g_n.
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

  /// g(a), and |g_t| - mu g_n.
  double operator()(double a, double* g) const {
    const double first = s_[0] + a, second = s_[2] + a, determinant = first * second - s_[1] * s_[1];
    g[0] = (s_[1] * p_[1] - second * p_[0]) / determinant;
    g[1] = (s_[1] * p_[0] - first * p_[1]) / determinant;
    g[2] = -(q_n_ + along_[0] * g[0] + along_[1] * g[1]) * inverse_;
    return std::sqrt(g[0] * g[0] + g[1] * g[1]) - mu_ * g[2];
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
  if (slide.regular() && slide(0, g) <= 0) return;  // it sticks
  // Bounds low, where the friction is too large for the cone, and high, where it is not.
  double high = slide.trace() > 0 ? slide.trace() : normal, low = 0;
  int steps = 0;
  while (slide(high, g) > 0 && ++steps < kMostSteps) {
    low = high;
    high *= kWiden;
  }
  for (double next = high / kWiden; low == 0 && ++steps < kMostSteps; next /= kWiden)
    (slide(next, g) > 0 ? low : high) = next;
  double f_low = slide(low, g), f_high = slide(high, g);
  int side = 0;
  for (steps = 0; steps < kMostSteps && high - low > kRounding * high; ++steps) {
    // The secant, with the values at a bound that stays halved; every third time the middle.
    double next = (low * f_high - high * f_low) / (f_high - f_low);
    if (steps % 3 == 2 || !(next > low && next < high)) next = (low + high) / 2;
    const double f = slide(next, g);
    if (f > 0) {
      low = next;
      f_low = f;
      if (side == 1) f_high /= 2;
      side = 1;
    } else {
      high = next;
      f_high = f;
      if (side == -1) f_low /= 2;
      side = -1;
    }
  }
  slide(high, g);
  const double size = std::sqrt(g[0] * g[0] + g[1] * g[1]);
  g[2] = std::max(g[2], 0.0);
  for (int i = 0; i < 2; ++i) g[i] = size > 0 ? g[i] * mu * g[2] / size : 0;
}

GaussSeidel::GaussSeidel(int contacts) : u_(3 * contacts) {}

void GaussSeidel::sweep(const Impulses& problem, const Proximal& proximal, int sweeps, double* h) {
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
        if (proximal.weight > 0) {
          W[4 * i] += proximal.weight;
          q[i] -= proximal.weight * proximal.center[first + i];
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
