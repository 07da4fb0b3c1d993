// The parts of a step that are smooth but for a choice of branches, of numbers or of variables of a Tape. The head of
// include/lcp/physics/rigid_scene.h has the mathematics.
//
// `read` gives the numbers that a part depends on, as Vector<T> and the like: position(body), orientation(body),
// rotation(body), velocity(body), angular_velocity(body), mass(body), inertia(body), drag(body), gravity(), force(body)
// and torque(body), center(ball), radius(ball), normal(plane) and offset(plane), restitution(pair), stiffness(pair) and
// dissipation(pair).
#pragma once

#include <cmath>
#include <limits>
#include <numbers>

#include "rigid/rotation.h"
#include "rigid/scene.h"
#include "rigid/tape.h"
#include "rigid/vectors.h"

namespace lcp::rigid {

/// A velocity and an angular velocity in the axes of the body, or the factors of both in a velocity of a contact.
template <class T>
struct Twist {
  Vector<T> linear, angular;
};

/// That of body i of velocities [6 b].
inline Twist<double> twist_at(const double* nu, int i) { return {vector_at(nu, 2 * i), vector_at(nu, 2 * i + 1)}; }

template <class T>
T dot(const Twist<T>& a, const Twist<T>& b) {
  return dot(a.linear, b.linear) + dot(a.angular, b.angular);
}

template <class T, class Reader>
Twist<T> free_velocity(int body, double dt, Reader& read) {
  const Matrix<T> inertia = read.inertia(body);
  const Vector<T> velocity = read.velocity(body), force = read.force(body) - read.drag(body) * velocity;
  return {velocity + dt * ((1 / read.mass(body)) * force + read.gravity()),
          gyroscopic(read.angular_velocity(body), inertia, dt) + dt * solve(inertia, read.torque(body))};
}

/// Where two bodies touch, or would.
template <class T>
struct Contact {
  T gap;  ///< m
  Vector<T> normal, point;
};

template <class T, class Reader>
Vector<T> center_of(int body, int ball, Reader& read) {
  return read.position(body) + read.rotation(body) * read.center(ball);
}

template <class T, class Reader>
Contact<T> contact_of(const Pair& pair, Reader& read) {
  using std::sqrt;
  const Vector<T> center = center_of<T>(pair.body, pair.ball, read);
  const T radius = read.radius(pair.ball);
  if (pair.plane >= 0) {
    Vector<T> normal = read.normal(pair.plane);
    T offset = read.offset(pair.plane);
    if (pair.other_body != Pair::kWorld) {
      normal = read.rotation(pair.other_body) * normal;
      offset = offset + dot(normal, read.position(pair.other_body));
    }
    return {dot(normal, center) - offset - radius, normal, center - radius * normal};
  }
  const Vector<T> between = center - center_of<T>(pair.other_body, pair.other_ball, read);
  const T square = dot(between, between);
  // Balls with one centre are pushed apart along z.
  T distance = 0;
  Vector<T> normal = {0, 0, 1};
  if (value_of(square) != 0) {
    distance = sqrt(square);
    normal = (1 / distance) * between;
  }
  const T gap = distance - radius - read.radius(pair.other_ball);
  return {gap, normal, center - (radius + 0.5 * gap) * normal};
}

/// Unit vectors t1, t2 with t1 x t2 = n for a unit vector n: the rows (t1, t2, n) [Duff et al.: Building an orthonormal
/// basis, revisited, Journal of Computer Graphics Techniques 6, 2017].
template <class T>
Matrix<T> frame_of(const Vector<T>& normal) {
  const T &x = normal[0], &y = normal[1], &z = normal[2];
  const double sign = value_of(z) < 0 ? -1 : 1;
  const T a = -1 / (sign + z), b = x * y * a;
  return {{{1 + sign * x * x * a, sign * b, -sign * x}, {b, sign + y * y * a, -y}, normal}};
}

/// The factors of the velocities of both bodies in that of a contact along a direction.
template <class T>
struct Row {
  Twist<T> body;
  Twist<T> other;  ///< not used where the contact is with a fixed plane
};

/// Of one body, that it is the velocity of a point of.
template <class T, class Reader>
Twist<T> row_of(int body, const Vector<T>& point, const Vector<T>& direction, Reader& read) {
  const Vector<T> arm = point - read.position(body);
  return {direction, transposed_times(read.rotation(body), cross(arm, direction))};
}

template <class T, class Reader>
Row<T> row_of(const Pair& pair, const Contact<T>& contact, const Vector<T>& direction, Reader& read) {
  Row<T> row = {row_of(pair.body, contact.point, direction, read), {}};
  if (pair.other_body != Pair::kWorld) row.other = row_of(pair.other_body, contact.point, -direction, read);
  return row;
}

/// nu: of all bodies.
template <class T>
T velocity_of(const Pair& pair, const Row<T>& row, const Twist<T>* nu) {
  const T velocity = dot(row.body, nu[pair.body]);
  return pair.other_body == Pair::kWorld ? velocity : velocity + dot(row.other, nu[pair.other_body]);
}

/// The lesser; where both are equal, it has the mean of their derivatives.
inline double lesser(double a, double b) { return b < a ? b : a; }
inline Variable lesser(const Variable& a, const Variable& b) {
  return a.value == b.value ? 0.5 * (a + b) : b.value < a.value ? b : a;
}

/// How a contact is to separate.
template <class T>
struct Separation {
  T b;           ///< m/s: u_n >= -b
  T time;        ///< s, of an impact after the beginning of the step
  T held;        ///< the share of the acceleration that the contact takes from the body after the impact
  bool bounces;  ///< whether there is an impact
};

/// gap: m. speed, earlier: m/s, with which the contact would close at the end of the step, and at its beginning.
/// threshold: m/s, of impacts.
template <class T>
Separation<T> separation_of(const T& gap, const T& speed, const T& earlier, const T& restitution, double threshold,
                            const Scene& scene) {
  using std::sqrt;
  const T arrival = (1 / scene.dt) * gap;
  const bool is_open = value_of(gap) > 0;
  const T closing = is_open ? arrival : scene.stabilization * arrival;
  if (!(value_of(speed) > threshold && value_of(speed) > value_of(arrival))) {
    return {closing, std::numeric_limits<double>::infinity(), 0, false};
  }
  // The impact is where the gap closes at constant acceleration: arrival = first share + growth share^2 / 2.
  const T growth = speed - earlier, first = 0.5 * (speed + earlier);
  T share = 0;  // of the step
  if (is_open) {
    const T square = first * first + 2 * growth * arrival;  // > 0 but for round-off
    share = value_of(square) > 0 ? 2 * arrival / (first + sqrt(square)) : T(1);
  }
  const T rebound = restitution * speed, after = (1 + restitution) * growth * (share - 0.5);
  T opening = rebound + lesser(after, rebound);
  if (value_of(opening) < 0) opening = 0;
  // A body that opens more slowly than this would be back before the end of the step.
  const T least = 0.5 * growth * share;
  const T held = value_of(opening) < value_of(least) ? 1 - opening / least : T(0);
  return {is_open ? -opening : lesser(-opening, closing), scene.dt * share, held, true};
}

/// The same of compliant contact: the velocity b = -v_hat of contact::Problem, and no impact.
template <class T>
Separation<T> compliant_separation(const T& gap, const T& dissipation, double dt) {
  return {gap / (dt + dissipation), std::numeric_limits<double>::infinity(), 0, false};
}

template <class T, class Reader>
Separation<T> separation_of(int pair, const Contact<T>& contact, const Row<T>& normal, const Twist<T>* free,
                            const Twist<T>* before, double threshold, const Scene& scene, Reader& read) {
  if (scene.law.formulation == Formulation::kCompliant) {
    return compliant_separation(contact.gap, read.dissipation(pair), scene.dt);
  }
  return separation_of(contact.gap, -velocity_of(scene.pairs[pair], normal, free),
                       -velocity_of(scene.pairs[pair], normal, before), read.restitution(pair), threshold, scene);
}

/// The inverse of the mass, 1/kg, and that of the inertia of a body, of which the symmetric part counts.
template <class T>
struct InverseMass {
  T linear;
  Matrix<T> angular;
};

template <class T, class Reader>
InverseMass<T> inverse_mass(int body, Reader& read) {
  const Matrix<T> inertia = read.inertia(body);
  Matrix<T> symmetric;
  for (std::size_t i = 0; i < 3; ++i) {
    for (std::size_t j = 0; j < 3; ++j) symmetric[i][j] = 0.5 * (inertia[i][j] + inertia[j][i]);
  }
  return {1 / read.mass(body), inverse(symmetric)};
}

/// The mean of the diagonal of a contact's block of J A^-1 J', 1/kg.
///   rows: its three. inverse: of all bodies.
template <class T>
T delassus_of(const Pair& pair, const Row<T>* rows, const InverseMass<T>* inverse) {
  const auto of_body = [](const Twist<T>& row, const InverseMass<T>& masses) {
    return masses.linear * dot(row.linear, row.linear) + dot(row.angular, masses.angular * row.angular);
  };
  T sum = 0;
  for (int i = 0; i < 3; ++i) {
    sum = sum + of_body(rows[i].body, inverse[pair.body]);
    if (pair.other_body != Pair::kWorld) sum = sum + of_body(rows[i].other, inverse[pair.other_body]);
  }
  return (1. / 3) * sum;
}

/// R of contact::Problem for one contact, 1/kg, as lcp/contact_parameters.h has it.
template <class T>
struct Regularization {
  T tangent, normal;
};

template <class T>
Regularization<T> regularization_of(const T& delassus, const T& stiffness, const T& dissipation, double dt,
                                    double sigma, double beta) {
  const double turn = 2 * std::numbers::pi;
  const T spring = 1 / (dt * stiffness * (dt + dissipation));
  const T least = beta * beta / (turn * turn) * delassus;
  return {sigma * delassus, -lesser(-spring, -least)};
}

/// The motion of a body in a step.
template <class T>
Twist<T> motion_of(const Twist<T>& nu, double dt) {
  return {dt * nu.linear, dt * nu.angular};
}
/// The motion of a body with an impact at the time t: t earlier + (dt - t) nu. For a body that flies until then,
/// `earlier` is its free velocity, which gives the motion at constant acceleration before and after the impact.
template <class T>
Twist<T> motion_of(const Twist<T>& nu, double dt, const T& time, const Twist<T>& earlier) {
  const Twist<T> motion = motion_of(nu, dt);
  return {motion.linear + time * (earlier.linear - nu.linear), motion.angular + time * (earlier.angular - nu.angular)};
}
/// The correction of this motion where the contact takes the share `held` of the acceleration after the impact.
template <class T>
Twist<T> held_motion(double dt, const T& time, const T& held, const Twist<T>& before, const Twist<T>& free) {
  const T weight = (0.5 / dt) * held * time * (dt - time);
  return {weight * (before.linear - free.linear), weight * (before.angular - free.angular)};
}

/// The speed from which a contact that closes is an impact, m/s.
inline double threshold_of(const Scene& scene, const double* gravity) {
  if (scene.bounce_threshold) return *scene.bounce_threshold;
  return 2 * scene.dt * std::sqrt(gravity[0] * gravity[0] + gravity[1] * gravity[1] + gravity[2] * gravity[2]);
}

}  // namespace lcp::rigid
