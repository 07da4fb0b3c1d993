#include "lcp/physics/rotation.h"

#include <ATen/ATen.h>

#include "physics/stepping.h"

namespace lcp::physics {
namespace {

using at::Tensor;

struct Quaternion {
  Tensor w, x, y, z;
  explicit Quaternion(const Tensor& q)
      : w(q.select(-1, 0)), x(q.select(-1, 1)), y(q.select(-1, 2)), z(q.select(-1, 3)) {}
};

Tensor unit(const Tensor& quaternion) { return quaternion / quaternion.square().sum(-1, true).sqrt(); }

Tensor product(const Tensor& left, const Tensor& right) {
  const Quaternion a(left), b(right);
  return vector_of({a.w * b.w - a.x * b.x - a.y * b.y - a.z * b.z, a.w * b.x + a.x * b.w + a.y * b.z - a.z * b.y,
                    a.w * b.y - a.x * b.z + a.y * b.w + a.z * b.x, a.w * b.z + a.x * b.y - a.y * b.x + a.z * b.w});
}

// cos(sqrt(s)) and sin(sqrt(s)) / sqrt(s), as the functions of s that are analytic at 0.
struct Trigonometric {
  Tensor cosine, sine_ratio;
  explicit Trigonometric(const Tensor& s) {
    // For s <= 1 the first term that these series leave out is below 1e-17.
    constexpr int kTerms = 9;
    const Tensor is_small = s <= 1, small = at::where(is_small, s, 0), large = at::where(is_small, 1, s).sqrt();
    Tensor cosine_series = at::ones_like(s), sine_series = at::ones_like(s);
    for (int k = kTerms; k > 0; --k) {
      cosine_series = 1 - small * cosine_series / ((2 * k - 1) * (2 * k));
      sine_series = 1 - small * sine_series / ((2 * k) * (2 * k + 1));
    }
    cosine = at::where(is_small, cosine_series, large.cos());
    sine_ratio = at::where(is_small, sine_series, large.sin() / large);
  }
};

}  // namespace

Tensor rotation_matrix(const Tensor& quaternion) {
  const Quaternion q(unit(quaternion));
  return matrix_of(
      {vector_of({1 - 2 * (q.y * q.y + q.z * q.z), 2 * (q.x * q.y - q.w * q.z), 2 * (q.x * q.z + q.w * q.y)}),
       vector_of({2 * (q.x * q.y + q.w * q.z), 1 - 2 * (q.x * q.x + q.z * q.z), 2 * (q.y * q.z - q.w * q.x)}),
       vector_of({2 * (q.x * q.z - q.w * q.y), 2 * (q.y * q.z + q.w * q.x), 1 - 2 * (q.x * q.x + q.y * q.y)})});
}

Tensor rotation_by(const Tensor& theta) {
  const Tensor half = theta / 2;
  const Trigonometric of_half(half.square().sum(-1, true));
  return at::cat({of_half.cosine, of_half.sine_ratio * half}, -1);
}

Tensor turned(const Tensor& quaternion, const Tensor& theta) { return unit(product(quaternion, rotation_by(theta))); }

Tensor rotation_between(const Tensor& a, const Tensor& b) {
  return product(at::cat({a.narrow(-1, 0, 1), -a.narrow(-1, 1, 3)}, -1), b);
}

Tensor angle_between(const Tensor& a, const Tensor& b) {
  const Tensor between = rotation_between(a, b);
  return 2 * at::atan2(between.narrow(-1, 1, 3).norm(2, {-1}), between.select(-1, 0).abs());
}

Tensor gyroscopic(const Tensor& omega, const Tensor& inertia, double dt) {
  // With the momentum y = I omega_m in the middle of the step, y - I omega = dt / 2 (y x omega_m).
  constexpr int kNewtonSteps = 4;
  const Tensor before = matvec(inertia, omega), eye = at::eye(3, omega.options());
  Tensor middle = omega;
  for (int k = 0; k < kNewtonSteps; ++k) {
    const Tensor y = matvec(inertia, middle);
    const Tensor error = y - before - dt / 2 * cross_product(y, middle);
    // For each direction d of the axes, d(y x omega_m) = (I d) x omega_m + y x d.
    const Tensor rows = cross_product(inertia.mT(), middle.unsqueeze(-2)) + cross_product(y.unsqueeze(-2), eye);
    middle = middle - solve_3x3(inertia - dt / 2 * rows.mT(), error);
  }
  return 2 * middle - omega;
}

}  // namespace lcp::physics
