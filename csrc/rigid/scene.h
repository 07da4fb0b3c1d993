// The scene of include/lcp/physics/rigid_scene.h, and its trajectories, in memory.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "rigid/parameter.h"
#include "rigid/vectors.h"

namespace lcp::rigid {

/// A ball of a body, and the plane, the ball or the box that it may touch, or the limit of a joint. The balls of all
/// bodies are numbered together, and so are the boxes. A capsule is the ball that moves from one ball to another of the
/// same radius. A limit counts as a contact without friction along the coordinate of the joint.
/// The dry friction of a degree of freedom, a servo whose force has a range, a Coupling
/// and the three axes of a Closure, or six of a weld, are pairs, too, behind all others; they are rows of the problem
/// of a step, see csrc/friction/row_law.h, and always chosen.
struct Pair {
  int body, ball;
  int other_body;                      ///< kWorld for a fixed plane
  int plane;                           ///< -1 for a pair of balls, and of a ball and a box
  int other_ball;                      ///< of a pair of balls
  int limited = kNone;                 ///< the joint of a limit, for which the others are not used
  bool is_upper = false;               ///< the limit that it is
  int end = kNone, other_end = kNone;  ///< the other ends of a pair of capsules
  int box = kNone;                     ///< of the other body
  int resisted = kNone;                ///< the degree of freedom of dry friction, for which the others are not used
  int servo = kNone;                   ///< the Actuator with has_row, for which the others are not used
  int coupling = kNone;                ///< the Coupling, for which the others are not used
  int closure = kNone, axis = 0;  ///< the Closure, for which the others are not used, and the axis of the world along
                                  ///< which it holds the point, or 3 + that about which it holds the body

  static constexpr int kWorld = -1, kNone = -1;

  bool is_limit() const { return limited != kNone; }
  bool is_equation() const { return coupling != kNone || closure != kNone; }
  bool is_row() const { return resisted != kNone || servo != kNone || is_equation(); }
  bool is_of_joint() const { return is_limit() || is_row(); }
  bool has_other() const { return other_body != kWorld && !is_of_joint(); }
};

enum class Formulation { kExactCone, kPolyhedral, kCompliant };

/// The law of the contacts, and what belongs to one of the formulations alone.
struct Law {
  Formulation formulation;
  int directions = 0;          ///< of the friction of polyhedral contact
  double angle = 0;            ///< of the first of them, radians
  double sigma = 0, beta = 0;  ///< of lcp::RegularizationOptions, for compliant contact
  double kappa = 0;            ///< of smoothed derivatives, J
};

/// A joint carries a body of a tree. A free joint stands for itself and has the world as its parent.
struct Joint {
  enum class Kind { kFree, kBall, kSlide, kHinge };

  Kind kind;
  int body;
  int position;     ///< of a free joint: which of the positions and velocities of State is its own; else kNone
  int orientation;  ///< the same of a free joint or a ball joint, of orientations and angular velocities
  int coordinate;   ///< the same of a slide or a hinge, of coordinates and speeds
  int dof;          ///< the first of its degrees of freedom, among all velocities

  /// Its degrees of freedom: those along which it moves, and then those about which it turns.
  int slides() const { return kind == Kind::kFree ? 3 : kind == Kind::kSlide ? 1 : 0; }
  int turns() const { return kind == Kind::kHinge ? 1 : kind == Kind::kSlide ? 0 : 3; }
  int dofs() const { return slides() + turns(); }
};

/// A body of a tree, and the joints between its parent and it, from the parent on. Without joints it is fixed to it.
struct Link {
  int body;
  int parent;  ///< an earlier one, or Pair::kWorld
  int first_joint, joints;
  int first_dof, dofs;
};

constexpr std::array<double, 2> kUnlimited = {-std::numeric_limits<double>::infinity(),
                                              std::numeric_limits<double>::infinity()};

/// A motor of a slide or a hinge. Its force is gain control + b_0 + b_1 length + b_2 speed, where length and speed are
/// `gear` times those of the joint; on the joint acts `gear` times the force.
struct Actuator {
  int joint;
  std::array<double, 2> control_range = kUnlimited, force_range = kUnlimited;
  bool has_row = false;  ///< whether its impulse is that of a row, so that its range holds at the end of the step
};

/// The coordinate of a slide or a hinge is a polynomial of the fourth degree in that of another one, or a constant.
struct Coupling {
  int joint;
  int other;  ///< Pair::kNone for a constant
};

/// A point of a body of a tree that is one with a point of another one, or of the world. A weld holds the orientation
/// of the two, too.
struct Closure {
  int body;
  int other;  ///< Pair::kWorld for the world
  bool is_weld;
};

/// What all trajectories share, and the options of a step. The bodies 0 .. free - 1 move freely, with the origin of
/// their axes in the centre of mass; the others are those of `links`, in this order.
struct Scene {
  int bodies, balls, planes;
  std::vector<Pair> pairs;
  Law law;
  double dt;                               ///< s
  std::optional<double> bounce_threshold;  ///< m/s; absent: twice the speed that gravity gives in a step
  double stabilization;
  std::vector<Link> links = {};
  std::vector<Joint> joints = {};
  std::vector<Actuator> actuators = {};
  int boxes = 0;
  std::vector<Coupling> couplings = {};
  std::vector<Closure> closures = {};

  int contacts() const { return static_cast<int>(pairs.size()); }
  /// How many of the pairs are rows.
  int rows() const {
    return static_cast<int>(std::count_if(pairs.begin(), pairs.end(), [](const Pair& pair) { return pair.is_row(); }));
  }
  int free() const { return bodies - static_cast<int>(links.size()); }
  /// Velocities come in this order: of each free body the velocity and the angular velocity, then those of the joints.
  int first_of_trees() const { return 6 * free(); }
  int dofs_of_trees() const {
    return links.empty() ? 0 : links.back().first_dof + links.back().dofs - first_of_trees();
  }
  int velocities() const { return first_of_trees() + dofs_of_trees(); }
  /// That of a body, or nullptr for a free body or the world.
  const Link* link_of(int body) const { return body < free() ? nullptr : &links[body - free()]; }
};

/// Calls use(i, j) for each impulse i of a problem of these pairs, which are in order: number j of [3 c] of all pairs.
/// A row has one impulse, the last of its three numbers.
template <class Use>
void for_each_impulse(const Scene& scene, std::span<const int> chosen, const Use& use) {
  int next = 0;
  for (const int k : chosen) {
    for (int i = scene.pairs[k].is_row() ? 2 : 0; i < 3; ++i) use(next++, 3 * k + i);
  }
}

/// How many numbers a parameter has.
int size_of(Parameter parameter, const Scene& scene);

/// Where the numbers of each Parameter stand, or their derivatives.
template <class Number>
using Parameters = std::array<Number*, kParameters>;

int size_of(StatePart part, const Scene& scene);

template <class Number>
using State = std::array<Number*, kStateParts>;

/// The numbers that a trajectory has at each step; those of step s begin at data + s * stride. data is nullptr for
/// results that a simulation is not to write.
template <class Number>
struct Series {
  Number* data;
  std::int64_t stride;

  Number* operator[](std::int64_t s) const { return data + s * stride; }
};

/// The ends of the steps.
template <class Number>
struct Path {
  std::array<Series<Number>, kStateParts> parts;
  Series<Number> gamma;  ///< [3 c], N s

  State<Number> state(std::int64_t s) const {
    State<Number> all;
    for (std::size_t k = 0; k < kStateParts; ++k) all[k] = parts[k][s];
    return all;
  }
};

/// How many numbers each step takes: wrenches on all bodies, [b, 6], and the controls of the actuators.
inline int inputs_of(const Scene& scene) { return 6 * scene.bodies + static_cast<int>(scene.actuators.size()); }

/// Calls use(velocity, part, i) for each velocity: it is number i of this part of the state.
template <class Use>
void for_each_velocity(const Scene& scene, const Use& use) {
  const auto three = [&](int velocity, StatePart part, int i) {
    for (int k = 0; k < 3; ++k) use(velocity + k, part, 3 * i + k);
  };
  for (int body = 0; body < scene.free(); ++body) {
    three(6 * body, kVelocity, body);
    three(6 * body + 3, kAngularVelocity, body);
  }
  for (const Joint& joint : scene.joints) {
    switch (joint.kind) {
      case Joint::Kind::kFree:
        three(joint.dof, kVelocity, joint.position);
        three(joint.dof + 3, kAngularVelocity, joint.orientation);
        break;
      case Joint::Kind::kBall:
        three(joint.dof, kAngularVelocity, joint.orientation);
        break;
      case Joint::Kind::kSlide:
      case Joint::Kind::kHinge:
        use(joint.dof, kSpeed, joint.coordinate);
        break;
    }
  }
}

/// Calls move(part, i, x) for each number of positions and coordinates, which moves by x, and turn(i, x) for each
/// orientation, which turns by x, rad, in its own axes.
///   motion: of each velocity.
template <class T, class Move, class Turn>
void for_each_coordinate(const Scene& scene, const T* motion, const Move& move, const Turn& turn) {
  const auto move_three = [&](int i, const T* x) {
    for (int k = 0; k < 3; ++k) move(kPosition, 3 * i + k, x[k]);
  };
  for (int body = 0; body < scene.free(); ++body, motion += 6) {
    move_three(body, motion);
    turn(body, vector_at(motion, 1));
  }
  for (const Joint& joint : scene.joints) {
    switch (joint.kind) {
      case Joint::Kind::kFree:
        move_three(joint.position, motion);
        turn(joint.orientation, vector_at(motion, 1));
        break;
      case Joint::Kind::kBall:
        turn(joint.orientation, vector_at(motion, 0));
        break;
      case Joint::Kind::kSlide:
      case Joint::Kind::kHinge:
        move(kCoordinate, joint.coordinate, *motion);
        break;
    }
    motion += joint.dofs();
  }
}

}  // namespace lcp::rigid
