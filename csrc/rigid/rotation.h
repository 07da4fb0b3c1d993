// Rotations of rigid bodies, as include/lcp/physics/rotation.h has them, of numbers or of variables of a Tape.
#pragma once

#include <cmath>

#include "rigid/tape.h"
#include "rigid/vectors.h"

namespace lcp::rigid {

template <class T>
Quaternion<T> unit(const Quaternion<T>& q) {
  using std::sqrt;
  const T inverse = 1 / sqrt(q.w * q.w + q.x * q.x + q.y * q.y + q.z * q.z);
  return {q.w * inverse, q.x * inverse, q.y * inverse, q.z * inverse};
}

template <class T>
Quaternion<T> product(const Quaternion<T>& a, const Quaternion<T>& b) {
  return {a.w * b.w - a.x * b.x - a.y * b.y - a.z * b.z, a.w * b.x + a.x * b.w + a.y * b.z - a.z * b.y,
          a.w * b.y - a.x * b.z + a.y * b.w + a.z * b.x, a.w * b.z + a.x * b.y - a.y * b.x + a.z * b.w};
}

/// Of a quaternion of any length.
template <class T>
Matrix<T> rotation_matrix(const Quaternion<T>& quaternion) {
  const Quaternion<T> q = unit(quaternion);
  const T x = 2 * q.x, y = 2 * q.y, z = 2 * q.z;
  const T xx = q.x * x, yy = q.y * y, zz = q.z * z, xy = q.x * y, xz = q.x * z, yz = q.y * z;
  const T wx = q.w * x, wy = q.w * y, wz = q.w * z;
  return {{{1 - (yy + zz), xy - wz, xz + wy}, {xy + wz, 1 - (xx + zz), yz - wx}, {xz - wy, yz + wx, 1 - (xx + yy)}}};
}

/// cos(sqrt(s)), sin(sqrt(s)) / sqrt(s) and the derivative of the latter in s; that of the former is minus half of it.
struct Trigonometric {
  double cosine, sine_ratio, slope;

  explicit Trigonometric(double s) {
    if (s > 1) {
      const double root = std::sqrt(s);
      cosine = std::cos(root);
      sine_ratio = std::sin(root) / root;
      slope = (cosine - sine_ratio) / (2 * s);
      return;
    }
    // The first term that these series leave out is below 1e-17.
    constexpr int kTerms = 9;
    cosine = sine_ratio = 1;
    slope = 0;
    for (int k = kTerms; k > 0; --k) {
      cosine = 1 - s * cosine / ((2 * k - 1) * (2 * k));
      slope = -(sine_ratio + s * slope) / ((2 * k) * (2 * k + 1));
      sine_ratio = 1 - s * sine_ratio / ((2 * k) * (2 * k + 1));
    }
  }
};

/// The rotation by |theta| rad about theta.
template <class T>
Quaternion<T> rotation_by(const Vector<T>& theta) {
  const Vector<T> half = 0.5 * theta;
  const T square = dot(half, half);
  const Trigonometric of_half(value_of(square));
  const T cosine = function(square, of_half.cosine, -0.5 * of_half.sine_ratio);
  const Vector<T> turn = function(square, of_half.sine_ratio, of_half.slope) * half;
  return {cosine, turn[0], turn[1], turn[2]};
}

/// The orientation after a turn by theta, rad, in the body's own axes.
template <class T>
Quaternion<T> turned(const Quaternion<T>& orientation, const Vector<T>& theta) {
  return unit(product(orientation, rotation_by(theta)));
}

/// For the angular velocity omega_m in the middle of a step of free motion and the momentum y = I omega_m:
/// y - I omega - dt / 2 (y x omega_m), which is 0 by the implicit midpoint rule.
template <class T>
Vector<T> midpoint_error(const Vector<double>& middle, const Vector<T>& omega, const Matrix<T>& inertia, double dt) {
  const Vector<T> known = {middle[0], middle[1], middle[2]}, y = inertia * known;
  return y - inertia * omega - dt / 2 * cross(y, known);
}

/// The inverse of its derivative in omega_m.
inline Matrix<double> midpoint_inverse(const Vector<double>& middle, const Matrix<double>& inertia, double dt) {
  const Vector<double> y = inertia * middle;
  Matrix<double> slope = inertia;
  for (std::size_t j = 0; j < 3; ++j) {
    // d(y x omega_m) = (I d) x omega_m + y x d for each direction d of the axes.
    Vector<double> change = cross(column(inertia, j), middle);
    const std::size_t next = (j + 1) % 3, last = (j + 2) % 3;
    change[next] += y[last];
    change[last] -= y[next];
    for (std::size_t i = 0; i < 3; ++i) slope[i][j] -= dt / 2 * change[i];
  }
  return inverse(slope);
}

/// The angular velocity in the middle of a step, by Newton's method.
inline Vector<double> middle_of(const Vector<double>& omega, const Matrix<double>& inertia, double dt) {
  constexpr int kNewtonSteps = 4;
  Vector<double> middle = omega;
  for (int k = 0; k < kNewtonSteps; ++k) {
    middle = middle - midpoint_inverse(middle, inertia, dt) * midpoint_error(middle, omega, inertia, dt);
  }
  return middle;
}

/// The angular velocity of a body free of torques after the time dt, by the implicit midpoint rule.
inline Vector<double> gyroscopic(const Vector<double>& omega, const Matrix<double>& inertia, double dt) {
  return 2 * middle_of(omega, inertia, dt) - omega;
}

/// The same, with the derivative of the solution, which is that of one more step of Newton's method from there.
inline Vector<Variable> gyroscopic(const Vector<Variable>& omega, const Matrix<Variable>& inertia, double dt) {
  const Matrix<double> numbers = values_of(inertia);
  const Vector<double> middle = middle_of(values_of(omega), numbers, dt);
  const Matrix<double> inverse = midpoint_inverse(middle, numbers, dt);
  const Vector<Variable> error = midpoint_error(middle, omega, inertia, dt);
  Vector<Variable> after;
  for (std::size_t i = 0; i < 3; ++i) {
    after[i] =
        2 * (middle[i] - (inverse[i][0] * error[0] + inverse[i][1] * error[1] + inverse[i][2] * error[2])) - omega[i];
  }
  return after;
}

}  // namespace lcp::rigid
