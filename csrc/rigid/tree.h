// Bodies that joints join to trees: their places, their velocities, the forces that a motion needs, and the mass matrix
// [Featherstone: Rigid Body Dynamics Algorithms, 2008], of numbers or of variables of a Tape.
//
// Vectors are in the axes of the world unless it is said otherwise. A degree of freedom is a direction along which the
// body and all that it carries move, or an axis about which they turn.
//
// `read` gives, besides what rigid/step.h names: center_of_mass(body), placement(body) and turn_of_placement(body) in
// the axes of the parent, axis(joint) and anchor(joint) in those of the body; origin(joint), turn(joint) and
// coordinate(joint) of the state; spring(joint) and rest(joint); armature(k) and damping(k) of degree of freedom k of
// the trees; gear(actuator), gain(actuator), bias(actuator, i) and control(actuator).
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <vector>

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

/// A degree of freedom: it turns about the axis through the point, or moves along the axis.
template <class T>
struct Screw {
  Vector<T> axis, point;
  bool turns;
};

/// The places of bodies.
template <class T>
struct Places {
  std::vector<Vector<T>> positions;  ///< of the origin of each body
  std::vector<Matrix<T>> rotations;  ///< of each body
  std::vector<Screw<T>> screws;      ///< of each degree of freedom of the trees

  explicit Places(const Scene& scene)
      : positions(scene.bodies), rotations(scene.bodies), screws(scene.dofs_of_trees()) {}

  const Vector<T>& position(int body) const { return positions[body]; }
  const Matrix<T>& rotation(int body) const { return rotations[body]; }
};

template <class T>
Matrix<T> operator*(const Matrix<T>& A, const Matrix<T>& B) {
  const Vector<T> first = column(B, 0), second = column(B, 1), third = column(B, 2);
  Matrix<T> product;
  for (std::size_t i = 0; i < 3; ++i) product[i] = {dot(A[i], first), dot(A[i], second), dot(A[i], third)};
  return product;
}

/// The rotation by the angle, rad, about an axis of length 1.
template <class T>
Matrix<T> rotation_about(const Vector<T>& axis, const T& angle) {
  using std::cos, std::sin;
  const T c = cos(angle), s = sin(angle), rest = 1 - c;
  const T x = s * axis[0], y = s * axis[1], z = s * axis[2];
  const Vector<T> scaled = rest * axis;
  const T xy = scaled[0] * axis[1], xz = scaled[0] * axis[2], yz = scaled[1] * axis[2];
  return {{{c + scaled[0] * axis[0], xy - z, xz + y},
           {xy + z, c + scaled[1] * axis[1], yz - x},
           {xz - y, yz + x, c + scaled[2] * axis[2]}}};
}

/// Sets the places of the bodies of the trees.
template <class T, class Reader>
void place(const Scene& scene, Reader& read, Places<T>& to) {
  for (const Link& link : scene.links) {
    Vector<T>& p = to.positions[link.body];
    Matrix<T>& R = to.rotations[link.body];
    p = read.placement(link.body);
    R = rotation_matrix(read.turn_of_placement(link.body));
    if (link.parent != Pair::kWorld) {
      p = to.positions[link.parent] + to.rotations[link.parent] * p;
      R = to.rotations[link.parent] * R;
    }
    for (int j = link.first_joint; j < link.first_joint + link.joints; ++j) {
      const Joint& joint = scene.joints[j];
      Screw<T>* const screws = to.screws.data() + joint.dof - scene.first_of_trees();
      const auto turn_about = [&](const Vector<T>& point, Screw<T>* axes) {
        for (std::size_t i = 0; i < 3; ++i) axes[i] = {column(R, i), point, true};
      };
      if (joint.kind == Joint::Kind::kFree) {
        p = read.origin(j);
        R = rotation_matrix(read.turn(j));
        for (std::size_t i = 0; i < 3; ++i) {
          Vector<T> axis = {0, 0, 0};
          axis[i] = 1;
          screws[i] = {axis, p, false};
        }
        turn_about(p, screws + 3);
        continue;
      }
      if (joint.kind == Joint::Kind::kSlide) {
        const Vector<T> axis = R * read.axis(j);
        p = p + read.coordinate(j) * axis;
        screws[0] = {axis, p, false};
        continue;
      }
      const Vector<T> anchor = read.anchor(j), point = p + R * anchor;
      if (joint.kind == Joint::Kind::kHinge) {
        screws[0] = {R * read.axis(j), point, true};
        R = R * rotation_about(read.axis(j), read.coordinate(j));
      } else {
        R = R * rotation_matrix(read.turn(j));
        turn_about(point, screws);
      }
      p = point - R * anchor;
    }
  }
}

/// The motion of a body, at its origin.
template <class T>
struct Motion {
  Vector<T> turning, velocity;             ///< rad/s, m/s
  Vector<T> turning_change, acceleration;  ///< rad/s^2, m/s^2

  /// That of the point at `arm` from the origin that moves with the body.
  Motion at(const Vector<T>& arm) const {
    const Vector<T> across = cross(turning, arm);
    return {turning, velocity + across, turning_change,
            acceleration + cross(turning_change, arm) + cross(turning, across)};
  }
};

/// The motions of the bodies of the trees, [bodies], for the velocities and accelerations of their degrees of freedom.
template <class T>
void move_trees(const Scene& scene, const Places<T>& places, const T* velocity, const T* acceleration,
                std::vector<Motion<T>>& to) {
  for (const Link& link : scene.links) {
    Motion<T> motion = {};
    Vector<T> point = {0, 0, 0};
    if (link.parent != Pair::kWorld) {
      motion = to[link.parent];
      point = places.positions[link.parent];
    }
    for (int j = link.first_joint; j < link.first_joint + link.joints; ++j) {
      const Joint& joint = scene.joints[j];
      const int first = joint.dof - scene.first_of_trees();
      const auto sum = [&](const T* of, int begin, int count) {
        Vector<T> all = of[begin] * places.screws[begin].axis;
        for (int i = begin + 1; i < begin + count; ++i) all = all + of[i] * places.screws[i].axis;
        return all;
      };
      if (joint.slides() > 0) {
        const Vector<T> relative = sum(velocity, first, joint.slides());
        motion.acceleration =
            motion.acceleration + sum(acceleration, first, joint.slides()) + 2 * cross(motion.turning, relative);
        motion.velocity = motion.velocity + relative;
      }
      if (joint.turns() > 0) {
        const int begin = first + joint.slides();
        motion = motion.at(places.screws[begin].point - point);
        point = places.screws[begin].point;
        const Vector<T> relative = sum(velocity, begin, joint.turns());
        motion.turning_change =
            motion.turning_change + sum(acceleration, begin, joint.turns()) + cross(motion.turning, relative);
        motion.turning = motion.turning + relative;
      }
    }
    to[link.body] = motion.at(places.positions[link.body] - point);
  }
}

/// Sets the velocities of the bodies of the trees at their origins, for those of the degrees of freedom.
template <class T>
void set_twists(const Scene& scene, const Places<T>& places, const T* velocity, std::vector<Motion<T>>& work,
                std::vector<Twist<T>>& to) {
  for (const Link& link : scene.links) {
    Vector<T> turning = {0, 0, 0}, moving = {0, 0, 0}, point = {0, 0, 0};
    if (link.parent != Pair::kWorld) {
      turning = work[link.parent].turning;
      moving = work[link.parent].velocity;
      point = places.positions[link.parent];
    }
    for (int dof = link.first_dof - scene.first_of_trees(), end = dof + link.dofs; dof < end; ++dof) {
      const Screw<T>& screw = places.screws[dof];
      if (screw.turns) {
        moving = moving + cross(turning, screw.point - point);
        point = screw.point;
      }
      (screw.turns ? turning : moving) = (screw.turns ? turning : moving) + velocity[dof] * screw.axis;
    }
    moving = moving + cross(turning, places.positions[link.body] - point);
    work[link.body].turning = turning;
    work[link.body].velocity = moving;
    to[link.body] = {moving, transposed_times(places.rotations[link.body], turning)};
  }
}

/// Force and torque, about the origin of a body.
template <class T>
struct Wrench {
  Vector<T> force, torque;
};

/// The wrench that accelerates a body so, with gravity; the inertia and the centre of mass are in the axes of the body.
template <class T>
Wrench<T> wrench_of(const Motion<T>& motion, const Matrix<T>& rotation, const T& mass, const Vector<T>& center,
                    const Matrix<T>& inertia, const Vector<T>& gravity) {
  const Vector<T> arm = rotation * center;
  const Vector<T> force = mass * (motion.at(arm).acceleration - gravity);
  const Vector<T> turning = transposed_times(rotation, motion.turning);
  const Vector<T> torque =
      inertia * transposed_times(rotation, motion.turning_change) + cross(turning, inertia * turning);
  return {force, rotation * torque + cross(arm, force)};
}

/// Adds the forces along the degrees of freedom of the trees that balance wrenches on their bodies, times `factor`.
///   wrenches: [bodies]; those of a body get those of what it carries, too. to: of each degree of freedom.
template <class T>
void add_forces(const Scene& scene, const Places<T>& places, std::vector<Wrench<T>>& wrenches, double factor, T* to) {
  for (auto link = scene.links.rbegin(); link != scene.links.rend(); ++link) {
    const Wrench<T>& wrench = wrenches[link->body];
    const Vector<T>& origin = places.positions[link->body];
    const int begin = link->first_dof - scene.first_of_trees();
    for (int dof = begin; dof < begin + link->dofs; ++dof) {
      const Screw<T>& screw = places.screws[dof];
      const Vector<T> along = screw.turns ? wrench.torque + cross(origin - screw.point, wrench.force) : wrench.force;
      to[dof] = to[dof] + factor * dot(screw.axis, along);
    }
    if (link->parent == Pair::kWorld) continue;
    Wrench<T>& carried = wrenches[link->parent];
    carried.torque = carried.torque + wrench.torque + cross(origin - places.positions[link->parent], wrench.force);
    carried.force = carried.force + wrench.force;
  }
}

/// The forces of the joints themselves, of their dampers, springs and actuators without a row, at the end of a step
/// with the velocity v: F(v) = F(before) - (drag / dt) (v - before) along each degree of freedom.
template <class T>
struct JointForces {
  std::vector<T> at_before;  ///< F(before), N or N m
  std::vector<T> drag;       ///< with the armature, kg or kg m^2: what they add to the mass
};

/// x, or the bound that it exceeds; at a bound it has the mean of both derivatives.
inline double clamped(double x, const std::array<double, 2>& range) {
  return x < range[0] ? range[0] : x > range[1] ? range[1] : x;
}
inline Variable clamped(const Variable& x, const std::array<double, 2>& range) {
  if (x.value < range[0]) return range[0];
  if (x.value > range[1]) return range[1];
  return function(x, x.value, x.value == range[0] || x.value == range[1] ? 0.5 : 1);
}

/// The force of an actuator at the end of a step with the speed v of its joint is at_rest + slope gear v. It falls
/// where the slope is < 0.
template <class T>
struct ActuatorForce {
  T gear, at_rest, slope;
};

template <class T, class Reader>
ActuatorForce<T> force_of(const Scene& scene, int number, Reader& read) {
  const Actuator& actuator = scene.actuators[number];
  const T gear = read.gear(number), position = read.bias(number, 1);
  const T fixed = read.gain(number) * clamped(read.control(number), actuator.control_range) + read.bias(number, 0);
  return {gear, fixed + gear * (position * read.coordinate(actuator.joint)),
          read.bias(number, 2) + scene.dt * position};
}

/// The row of an actuator: its impulse h has the velocity s = gear v + b + compliance h of csrc/friction/row_law.h, so
/// that s = 0 where the force is within its range, and else the force is at the bound that it exceeds. A force that
/// does not fall with the speed is given, by the speed before.
template <class T>
struct ServoRow {
  T gear, b, compliance, lower, upper;
};

template <class T, class Reader>
ServoRow<T> row_of_servo(const Scene& scene, int number, const T& before, Reader& read) {
  const ActuatorForce<T> force = force_of<T>(scene, number, read);
  const std::array<double, 2>& range = scene.actuators[number].force_range;
  if (!(value_of(force.slope) < 0)) {
    const T impulse = scene.dt * clamped(force.at_rest + force.slope * (force.gear * before), range);
    return {force.gear, 0, 0, impulse, impulse};
  }
  const T inverse = -1 / force.slope;
  return {force.gear, -(inverse * force.at_rest), (1 / scene.dt) * inverse, scene.dt * range[0], scene.dt * range[1]};
}

/// before: the velocities before the step, of the degrees of freedom of the trees. free: those after it without
/// contacts, where the actuators have no limits; it decides which forces are at a limit. nullptr: none.
template <class T, class Reader>
void find_joint_forces(const Scene& scene, Reader& read, const T* before, const double* free, JointForces<T>& to) {
  const double dt = scene.dt;
  for (int k = 0; k < scene.dofs_of_trees(); ++k) {
    to.at_before[k] = -read.damping(k) * before[k];
    to.drag[k] = read.armature(k) + dt * read.damping(k);
  }
  for (std::size_t j = 0; j < scene.joints.size(); ++j) {
    const Joint& joint = scene.joints[j];
    if (joint.coordinate == Pair::kNone) continue;
    const int k = joint.dof - scene.first_of_trees(), number = static_cast<int>(j);
    const T spring = read.spring(number);
    to.at_before[k] = to.at_before[k] - spring * (read.coordinate(number) + dt * before[k] - read.rest(number));
    to.drag[k] = to.drag[k] + (dt * dt) * spring;
  }
  for (std::size_t a = 0; a < scene.actuators.size(); ++a) {
    const Actuator& actuator = scene.actuators[a];
    if (actuator.has_row) continue;
    const int number = static_cast<int>(a), k = scene.joints[actuator.joint].dof - scene.first_of_trees();
    const ActuatorForce<T> all = force_of<T>(scene, number, read);
    const T &gear = all.gear, slope = gear * all.slope, force = all.at_rest + slope * before[k];
    const double at_end = free == nullptr ? 0 : value_of(force) + value_of(slope) * (free[k] - value_of(before[k]));
    if (free != nullptr && clamped(at_end, actuator.force_range) != at_end) {
      to.at_before[k] = to.at_before[k] + clamped(at_end, actuator.force_range) * gear;
      continue;
    }
    to.at_before[k] = to.at_before[k] + gear * force;
    to.drag[k] = to.drag[k] - dt * (gear * slope);
  }
}

/// Adds the impulses of the joints themselves; all forces act in the first problem of a step.
template <class T>
void add_joint_forces(const Scene& scene, const JointForces<T>& joints, bool with_forces, const T* from, const T* after,
                      T* P) {
  for (int k = 0; k < scene.dofs_of_trees(); ++k) {
    P[k] = P[k] - joints.drag[k] * (after[k] - from[k]);
    if (with_forces) P[k] = P[k] + scene.dt * joints.at_before[k];
  }
}

/// Memory of add_momentum.
template <class T>
struct TreeWork {
  std::vector<Motion<T>> motions;
  std::vector<Wrench<T>> wrenches;  ///< of each body; contacts subtract their impulses / dt before the call
  std::vector<T> acceleration, at_rest;

  void clear() { wrenches.assign(wrenches.size(), {}); }

  explicit TreeWork(const Scene& scene)
      : motions(scene.bodies),
        wrenches(scene.bodies),
        acceleration(scene.dofs_of_trees()),
        at_rest(scene.dofs_of_trees()) {}
};

/// Adds to P what the momentum of the trees lacks, N s or N m s: the impulses of contacts, and of all forces in a step,
/// less the change of momentum from the velocities `from` to `after`. All forces act in the first problem of a step.
template <class T, class Reader>
void add_momentum(const Scene& scene, const Places<T>& places, Reader& read, const JointForces<T>& joints,
                  bool with_forces, const T* from, const T* after, TreeWork<T>& work, T* P) {
  const int dofs = scene.dofs_of_trees();
  for (int k = 0; k < dofs; ++k) work.acceleration[k] = (1 / scene.dt) * (after[k] - from[k]);
  move_trees(scene, places, with_forces ? from : work.at_rest.data(), work.acceleration.data(), work.motions);
  const Vector<T> gravity = with_forces ? read.gravity() : Vector<T>{0, 0, 0};
  for (const Link& link : scene.links) {
    const int body = link.body;
    const Matrix<T>& rotation = places.rotations[body];
    const Vector<T> center = read.center_of_mass(body);
    const Wrench<T> needed =
        wrench_of(work.motions[body], rotation, read.mass(body), center, symmetric(read.inertia(body)), gravity);
    Wrench<T>& wrench = work.wrenches[body];
    wrench = {wrench.force + needed.force, wrench.torque + needed.torque};
    if (!with_forces) continue;
    const Vector<T> arm = rotation * center;
    const Vector<T> force = read.force(body) - read.drag(body) * work.motions[body].at(arm).velocity;
    wrench.force = wrench.force - force;
    wrench.torque = wrench.torque - cross(arm, force) - rotation * read.torque(body);
  }
  add_forces(scene, places, work.wrenches, -scene.dt, P);
  add_joint_forces(scene, joints, with_forces, from, after, P);
}

/// Adds the factors of the velocities of the trees in that of a point of a body along a direction.
///   row: of all velocities.
inline void add_row(const Scene& scene, const Places<double>& places, int body, const Vector<double>& point,
                    const Vector<double>& direction, double* row) {
  for (const Link* link = scene.link_of(body); link != nullptr; link = scene.link_of(link->parent)) {
    for (int dof = link->first_dof; dof < link->first_dof + link->dofs; ++dof) {
      const Screw<double>& screw = places.screws[dof - scene.first_of_trees()];
      row[dof] += screw.turns ? dot(screw.axis, cross(point - screw.point, direction)) : dot(screw.axis, direction);
    }
  }
}

/// Adds the factors of the velocities of the trees in the angular velocity of a body about an axis.
inline void add_turning_row(const Scene& scene, const Places<double>& places, int body, const Vector<double>& axis,
                            double* row) {
  for (const Link* link = scene.link_of(body); link != nullptr; link = scene.link_of(link->parent)) {
    for (int dof = link->first_dof; dof < link->first_dof + link->dofs; ++dof) {
      const Screw<double>& screw = places.screws[dof - scene.first_of_trees()];
      if (screw.turns) row[dof] += dot(screw.axis, axis);
    }
  }
}

/// The mass matrix of the trees, by composite bodies.
class CompositeBodies {
 public:
  explicit CompositeBodies(const Scene& scene) : all_(scene.bodies) {}

  /// Sets the part of A, [n, n], that belongs to the trees. mass, center and inertia: of each body.
  template <class Reader>
  void set_mass_matrix(const Scene& scene, const Places<double>& places, Reader& read, double* A);

 private:
  struct Composite {
    double mass;
    Vector<double> center;   // of mass
    Matrix<double> inertia;  // about it
  };
  static Composite joined(const Composite& a, const Composite& b);

  std::vector<Composite> all_;
};

inline CompositeBodies::Composite CompositeBodies::joined(const Composite& a, const Composite& b) {
  Composite all = {a.mass + b.mass, a.center, {}};
  const double share = all.mass > 0 ? 1 / all.mass : 0;
  const Vector<double> apart = b.center - a.center;
  all.center = a.center + (share * b.mass) * apart;
  const double reduced = share * a.mass * b.mass, square = dot(apart, apart);
  for (std::size_t i = 0; i < 3; ++i) {
    for (std::size_t j = 0; j < 3; ++j) {
      all.inertia[i][j] = a.inertia[i][j] + b.inertia[i][j] + reduced * ((i == j ? square : 0) - apart[i] * apart[j]);
    }
  }
  return all;
}

template <class Reader>
void CompositeBodies::set_mass_matrix(const Scene& scene, const Places<double>& places, Reader& read, double* A) {
  const std::ptrdiff_t n = scene.velocities();
  for (const Link& link : scene.links) {
    const Matrix<double>& R = places.rotations[link.body];
    const Matrix<double> I = symmetric(read.inertia(link.body));
    Matrix<double> turned;  // R I
    for (std::size_t i = 0; i < 3; ++i) turned[i] = I * R[i];
    Matrix<double> inertia;
    for (std::size_t i = 0; i < 3; ++i) {
      for (std::size_t j = 0; j < 3; ++j) inertia[i][j] = dot(turned[i], R[j]);
    }
    all_[link.body] = {read.mass(link.body), places.positions[link.body] + R * read.center_of_mass(link.body), inertia};
  }
  for (auto link = scene.links.rbegin(); link != scene.links.rend(); ++link) {
    const Composite& composite = all_[link->body];
    for (int dof = link->first_dof; dof < link->first_dof + link->dofs; ++dof) {
      const Screw<double>& screw = places.screws[dof - scene.first_of_trees()];
      const Vector<double> force =
          composite.mass * (screw.turns ? cross(screw.axis, composite.center - screw.point) : screw.axis);
      const Vector<double> torque = screw.turns ? composite.inertia * screw.axis : Vector<double>{0, 0, 0};
      for (const Link* other = &*link; other != nullptr; other = scene.link_of(other->parent)) {
        for (int k = other->first_dof; k < other->first_dof + other->dofs && k <= dof; ++k) {
          const Screw<double>& along = places.screws[k - scene.first_of_trees()];
          A[dof * n + k] = A[k * n + dof] =
              dot(along.axis, along.turns ? torque + cross(composite.center - along.point, force) : force);
        }
      }
    }
    if (link->parent != Pair::kWorld) all_[link->parent] = joined(all_[link->parent], composite);
  }
}

}  // namespace lcp::rigid
