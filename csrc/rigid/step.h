// The parts of a step that are smooth but for a choice of branches, of numbers or of variables of a Tape. The head of
// include/lcp/physics/rigid_scene.h has the mathematics.
//
// `read` gives the numbers that a part depends on, as Vector<T> and the like: position(body), orientation(body),
// rotation(body), velocity(body), angular_velocity(body), mass(body), inertia(body), drag(body), gravity(), force(body)
// and torque(body), center(ball), radius(ball), normal(plane) and offset(plane), box_size(box), box_center(box) and
// box_turn(box), restitution(pair), stiffness(pair) and dissipation(pair).
#pragma once

#include <array>
#include <cmath>
#include <limits>
#include <numbers>
#include <vector>

#include "rigid/rotation.h"
#include "rigid/scene.h"
#include "rigid/tape.h"
#include "rigid/tree.h"
#include "rigid/vectors.h"

namespace lcp::rigid {

/// That of free body i in the velocities of a scene.
template <class T>
Twist<T> twist_at(const T* nu, int i) {
  return {vector_at(nu, 2 * i), vector_at(nu, 2 * i + 1)};
}

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

/// A straight line from a point.
template <class T>
struct Segment {
  Vector<T> begin, along;

  Vector<T> at(const T& share) const { return begin + share * along; }
};

template <class T, class Reader>
Segment<T> segment_of(int body, int ball, int end, Reader& read) {
  const Vector<T> begin = center_of<T>(body, ball, read);
  if (end == Pair::kNone) return {begin, {0, 0, 0}};
  return {begin, center_of<T>(body, end, read) - begin};
}

/// x from 0 to 1; beyond, the nearest of both.
template <class T>
T share_of(const T& x) {
  return value_of(x) < 0 ? T(0) : value_of(x) > 1 ? T(1) : x;
}

/// The shares of the points of two segments that are nearest to each other [Ericson: Real-Time Collision Detection,
/// 2005]; of parallel segments, those of the middle of where both are beside each other.
template <class T>
std::array<T, 2> nearest_shares(const Segment<T>& a, const Segment<T>& b) {
  const Vector<T> between = a.begin - b.begin;
  const T aa = dot(a.along, a.along), ab = dot(a.along, b.along), bb = dot(b.along, b.along);
  const T of_a = dot(a.along, between), of_b = dot(b.along, between);
  // The nearest point of a segment to that of the other.
  const auto on_a = [&](const T& t) { return value_of(aa) > 0 ? share_of<T>((ab * t - of_a) / aa) : T(0); };
  const auto on_b = [&](const T& s) { return value_of(bb) > 0 ? share_of<T>((ab * s + of_b) / bb) : T(0); };
  if (!(value_of(aa) > 0)) return {T(0), on_b(0)};
  if (!(value_of(bb) > 0)) return {on_a(0), T(0)};
  const T determinant = aa * bb - ab * ab;
  constexpr double kParallel = 1e-12;
  if (value_of(determinant) <= kParallel * value_of(aa) * value_of(bb)) {
    const T s = 0.5 * (on_a(0) + on_a(1));
    return {s, on_b(s)};
  }
  const T t = on_b(share_of<T>((ab * of_b - bb * of_a) / determinant));
  return {on_a(t), t};
}

/// x, or the nearest number from -bound to bound.
template <class T>
T clamped(const T& x, const T& bound) {
  return value_of(x) > value_of(bound) ? bound : value_of(x) < -value_of(bound) ? T(-bound) : x;
}

/// Where a ball is nearest to a box. Its centre may be within the box: then the nearest face pushes it out.
template <class T, class Reader>
Contact<T> contact_with_box(const Vector<T>& center, const T& radius, int body, int box, Reader& read) {
  using std::sqrt;
  const Matrix<T> axes = read.rotation(body) * rotation_matrix(read.box_turn(box));
  const Vector<T> middle = read.position(body) + read.rotation(body) * read.box_center(box), size = read.box_size(box),
                  at = transposed_times(axes, center - middle);
  Vector<T> outside;
  std::size_t face = 0;
  for (std::size_t i = 0; i < 3; ++i) {
    outside[i] = at[i] - clamped(at[i], size[i]);
    const auto depth = [&](std::size_t k) { return value_of(size[k]) - std::abs(value_of(at[k])); };
    if (depth(i) < depth(face)) face = i;
  }
  const T square = dot(outside, outside);
  T distance;
  Vector<T> normal = {0, 0, 0};
  if (value_of(square) > 0) {
    distance = sqrt(square);
    normal = axes * ((1 / distance) * outside);
  } else {
    const double sign = value_of(at[face]) < 0 ? -1 : 1;
    distance = sign * at[face] - size[face];
    normal = sign * column(axes, face);
  }
  const T gap = distance - radius;
  return {gap, normal, center - (radius + 0.5 * gap) * normal};
}

/// That of a limit has a gap alone, m or rad.
template <class T, class Reader>
Contact<T> contact_of(const Pair& pair, Reader& read) {
  using std::sqrt;
  if (pair.is_limit()) {
    const T coordinate = read.coordinate(pair.limited), limit = read.limit(pair.limited, pair.is_upper);
    return {pair.is_upper ? limit - coordinate : coordinate - limit, {}, {}};
  }
  Vector<T> center = center_of<T>(pair.body, pair.ball, read);
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
  if (pair.box != Pair::kNone) return contact_with_box(center, radius, pair.other_body, pair.box, read);
  Vector<T> other = center_of<T>(pair.other_body, pair.other_ball, read);
  if (pair.end != Pair::kNone || pair.other_end != Pair::kNone) {
    const Segment<T> own = segment_of<T>(pair.body, pair.ball, pair.end, read),
                     its = segment_of<T>(pair.other_body, pair.other_ball, pair.other_end, read);
    const std::array<T, 2> shares = nearest_shares(own, its);
    center = own.at(shares[0]);
    other = its.at(shares[1]);
  }
  const Vector<T> between = center - other;
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

/// The factors of the velocity of one body in that of its `point` along a direction.
template <class T, class Reader>
Twist<T> row_of(int body, const Vector<T>& point, const Vector<T>& direction, Reader& read) {
  const Vector<T> arm = point - read.position(body);
  return {direction, transposed_times(read.rotation(body), cross(arm, direction))};
}

template <class T, class Reader>
Row<T> row_of(const Pair& pair, const Contact<T>& contact, const Vector<T>& direction, Reader& read) {
  Row<T> row = {row_of(pair.body, contact.point, direction, read), {}};
  if (pair.has_other()) row.other = row_of(pair.other_body, contact.point, -direction, read);
  return row;
}

/// The velocities of a scene, and those of its bodies.
template <class T>
struct Velocities {
  std::vector<T> all;
  std::vector<Twist<T>> of_bodies;

  explicit Velocities(const Scene& scene) : all(scene.velocities()), of_bodies(scene.bodies) {}
};

/// The degree of freedom of a limit, and the sign with which its gap grows.
inline int dof_of(const Pair& pair, const Scene& scene) { return scene.joints[pair.limited].dof; }
inline double sign_of(const Pair& pair) { return pair.is_upper ? -1 : 1; }

/// row: not used for limits.
template <class T>
T velocity_of(const Pair& pair, const Row<T>& row, const Velocities<T>& nu, const Scene& scene) {
  if (pair.is_limit()) return sign_of(pair) * nu.all[dof_of(pair, scene)];
  const T velocity = dot(row.body, nu.of_bodies[pair.body]);
  return pair.has_other() ? velocity + dot(row.other, nu.of_bodies[pair.other_body]) : velocity;
}

/// How far the coordinate of a coupling is off its polynomial, m or rad, and the derivative of the polynomial.
template <class T>
struct CouplingGap {
  T gap, slope;
};

template <class T, class Reader>
CouplingGap<T> gap_of(const Coupling& coupling, int number, Reader& read) {
  const T own = read.coordinate(coupling.joint);
  if (coupling.other == Pair::kNone) return {own - read.coupling(number, 0), 0};
  const T x = read.coordinate(coupling.other);
  T value = read.coupling(number, 4), slope = 0;
  for (int i = 3; i >= 0; --i) {
    slope = slope * x + value;
    value = value * x + read.coupling(number, i);
  }
  return {own - value, slope};
}

/// Both points of a closure.
template <class T>
using ClosurePoints = std::array<Vector<T>, 2>;

template <class T, class Reader>
ClosurePoints<T> points_of(const Closure& closure, int number, Reader& read) {
  const auto point = [&](int body, int end) -> Vector<T> {
    const Vector<T> own = read.closure(number, end);
    return body == Pair::kWorld ? own : read.position(body) + read.rotation(body) * own;
  };
  return {point(closure.body, 0), point(closure.other, 1)};
}

/// The turn from where a weld holds its body, as the other body has it, to where the body is: a rotation vector in the
/// axes of the world, rad, with 2 sin(angle / 2) as its length. NaN for half a turn.
template <class T, class Reader>
Vector<T> turn_of(const Closure& weld, int number, Reader& read) {
  using std::sqrt;
  const Matrix<T> own = read.rotation(weld.body) * rotation_matrix(read.closure_turn(number));
  Matrix<T> off = own;  // R_body R_held R_other', where off_ij is row i of the former and row j of R_other
  if (weld.other != Pair::kWorld) {
    const Matrix<T>& other = read.rotation(weld.other);
    for (std::size_t i = 0; i < 3; ++i) off[i] = other * own[i];
  }
  const T scale = 1 / sqrt(1 + off[0][0] + off[1][1] + off[2][2]);  // 1 / (2 cos(angle / 2))
  return scale * Vector<T>{off[2][1] - off[1][2], off[0][2] - off[2][0], off[1][0] - off[0][1]};
}

/// The lesser; where both are equal, it has the mean of their derivatives.
inline double lesser(double a, double b) { return b < a ? b : a; }
inline Variable lesser(const Variable& a, const Variable& b) {
  return a.value == b.value ? 0.5 * (a + b) : b.value < a.value ? b : a;
}

/// A contact in a step, of which the time `elapsed` has passed. Its speeds are those with which it closes, m/s, in the
/// middle of the step as it would be without impacts to come.
template <class T>
struct Approach {
  T gap;      ///< m, at the beginning of the step
  T moved;    ///< m, by which velocities have opened the gap since
  T elapsed;  ///< s
  T speed;
  T growth;      ///< by which the speed grows in a step without impacts, m/s
  bool has_met;  ///< whether the contact has had an impact in the step
};

/// Times that differ by less than this share of a step are the same.
constexpr double kSameTime = 1e-9;

/// The velocity b of a contact that takes no part in an impact, u_n >= -b: it may close its gap until the end of the
/// step.
template <class T>
T closing_of(const Approach<T>& at, const Scene& scene) {
  const T left = at.gap + at.moved, remaining = scene.dt - at.elapsed, least = kSameTime * scene.dt;
  // Round-off does not decide whether a contact that has met is open.
  const double speed = at.has_met ? std::abs(value_of(at.speed)) : 0;
  if (value_of(left) > speed * value_of(least))
    return left / (value_of(remaining) > value_of(least) ? remaining : least);
  return at.has_met || value_of(at.gap) > 0 ? T(0) : scene.stabilization / scene.dt * at.gap;
}

/// Whether the contact closes until the end of the step, faster than the threshold.
inline bool is_impact(const Approach<double>& at, double threshold, const Scene& scene) {
  return at.speed > threshold && at.speed * ((1 + kSameTime) * scene.dt - at.elapsed) > at.gap + at.moved;
}

/// When an impact is, s after the beginning of the step: where the gap closes at constant acceleration,
///   gap + moved - speed (t - elapsed) + growth t (dt - t) / (2 dt) = 0.
template <class T>
T time_of(const Approach<T>& at, double dt) {
  using std::sqrt;
  const T left = at.gap + at.moved + (0.5 / dt) * at.growth * at.elapsed * (dt - at.elapsed);
  if (!(value_of(left) > 0)) return at.elapsed;
  const T whole = at.gap + at.moved + at.speed * at.elapsed, first = at.speed - 0.5 * at.growth;
  const T square = first * first + (2 / dt) * at.growth * whole;  // > 0 but for round-off
  if (!(value_of(square) > 0)) return dt;
  const T time = 2 * whole / (first + sqrt(square));
  if (value_of(time) < value_of(at.elapsed) + kSameTime * dt) return at.elapsed;
  return value_of(time) > dt ? T(dt) : time;
}

/// How a contact rebounds.
template <class T>
struct Rebound {
  T b;     ///< m/s: u_n >= -b
  T held;  ///< m/s: the part of the growth that the contact holds back after the impact
};

/// time: time_of, s.
template <class T>
Rebound<T> rebound_of(const Approach<T>& at, const T& time, const T& restitution, const Scene& scene) {
  const T share = (1 / scene.dt) * time;
  const T rebound = restitution * at.speed, after = (1 + restitution) * at.growth * (share - 0.5);
  T opening = rebound + lesser(after, rebound);
  if (value_of(opening) < 0) opening = 0;
  // A body that opens more slowly than this would be back before the end of the step.
  const T least = 0.5 * at.growth * share;
  const T held = value_of(opening) < value_of(least) ? at.growth - 2 * opening / share : T(0);
  return {value_of(at.gap) > 0 ? -opening : lesser(-opening, closing_of(at, scene)), held};
}

/// The velocity b = -v_hat of contact::Problem, of compliant contact.
template <class T>
T compliant_closing(const T& gap, const T& dissipation, double dt) {
  return gap / (dt + dissipation);
}

/// The inverse of the mass, 1/kg, and that of the inertia of a body, of which the symmetric part counts.
template <class T>
struct InverseMass {
  T linear;
  Matrix<T> angular;
};

template <class T, class Reader>
InverseMass<T> inverse_mass(int body, Reader& read) {
  return {1 / read.mass(body), inverse(symmetric(read.inertia(body)))};
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
    if (pair.has_other()) sum = sum + of_body(rows[i].other, inverse[pair.other_body]);
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

template <class Factor, class T>
Twist<T> operator*(const Factor& factor, const Twist<T>& nu) {
  return {factor * nu.linear, factor * nu.angular};
}
template <class T>
Twist<T> operator+(const Twist<T>& a, const Twist<T>& b) {
  return {a.linear + b.linear, a.angular + b.angular};
}

/// By how much a contact that holds back a part of the growth of its speed changes the velocity of one of its bodies,
/// m/s, along the row of its normal: both bodies without turning, the lighter one more.
template <class T, class Reader>
Vector<T> held_velocity(const Pair& pair, const Row<T>& normal, const T& held, bool is_other, Reader& read) {
  if (!pair.has_other()) return held * normal.body.linear;
  const T mass = read.mass(pair.body), other = read.mass(pair.other_body);
  const T share = held / (mass + other);
  return is_other ? (share * mass) * normal.other.linear : (share * other) * normal.body.linear;
}

/// What that changes in the motion of the body, m, if the impact is at this time.
template <class T>
Vector<T> held_motion(double dt, const T& time, const Vector<T>& held) {
  return ((0.5 / dt) * time * (dt - time)) * held;
}

/// The speed from which a contact that closes is an impact, m/s.
inline double threshold_of(const Scene& scene, const double* gravity) {
  if (scene.bounce_threshold) return *scene.bounce_threshold;
  return 2 * scene.dt * std::sqrt(gravity[0] * gravity[0] + gravity[1] * gravity[1] + gravity[2] * gravity[2]);
}

}  // namespace lcp::rigid
