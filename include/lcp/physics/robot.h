// Robots: bodies that joints join to trees, free bodies beside them, and fixed planes, stepped in time with exact
// Coulomb friction. The coordinates are those of MuJoCo: qpos has, for each joint in its order, the position and the
// quaternion (w, x, y, z) of a free joint, the quaternion of a ball joint, or one number, m or rad. qvel has the
// velocity of a free joint in the axes of the world and its angular velocity in those of the body, the angular velocity
// of a ball joint in those of the body, or one number.
//
//   A (qvel_next - qvel) = dt (f - c) + J' gamma,   A = M + diag(armature) + dt D + dt^2 K
//
// where M is the mass matrix, c are the forces of gravity and of the motion itself [Featherstone], and f those of
// actuators, springs, dampers and loads before the step. The slopes D and K of the forces of springs, dampers and
// actuators in speed and position make these implicit, so that stiff ones are stable. Contacts and limits of joints may
// close their gap by the end of the step, u_n >= -gap / dt, and contacts obey Coulomb's law with the exact cone of
// lcp::solve_friction or with a pyramid. Along each degree of freedom dry friction has an impulse of at most
// dt friction_loss, which holds the velocity at 0 or, at its largest, is against it. Joints thus rest exactly. A
// coupling of joints and a closure of a loop of bodies are equations; their gaps, to the first order, are closed at the
// end of the step. qpos moves by dt qvel_next.
//
//   [Featherstone] Featherstone: Rigid Body Dynamics Algorithms, 2008.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/zeros.h>

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "lcp/export.h"
#include "lcp/feedback.h"
#include "lcp/physics/rigid_scene.h"

namespace lcp::physics {

enum class JointKind { kFree, kBall, kSlide, kHinge };

struct RobotJoint {
  std::int64_t body;        ///< that it moves
  JointKind kind;           ///< a free joint is the only one of a body whose parent is the world
  bool has_limits = false;  ///< of a slide or a hinge
  std::string name = {};    ///< any text, as all names
};

/// A motor of a slide or a hinge. Its force is gain control + b_0 + b_1 length + b_2 speed, where length and speed are
/// `gear` times those of the joint; on the joint acts `gear` times the force. A position servo has the gain k_p, b_1 =
/// -k_p and b_2 = -k_v. What exceeds a range counts as its bound. Whether a force does is decided with the contacts of
/// the step, as dry friction is: of a servo that is the force at the end of the step. With the options kappa or
/// bounce_threshold it is decided before the contacts.
struct RobotActuator {
  using Range = std::array<double, 2>;
  static constexpr Range kUnlimited = {-std::numeric_limits<double>::infinity(),
                                       std::numeric_limits<double>::infinity()};

  std::int64_t joint;
  Range control_range = kUnlimited, force_range = kUnlimited;
  std::string name = {};
};

/// A ball that may touch a plane or a box of another body, or a ball or capsule that may touch another one, of another
/// body. A capsule is named by the balls at its ends, which have the same radius.
struct RobotContact {
  std::int64_t ball;
  std::int64_t plane = kNone;
  std::int64_t other = kNone;                   ///< a ball, where there is no plane and no box
  std::int64_t end = kNone, other_end = kNone;  ///< of capsules
  std::int64_t box = kNone;

  static constexpr std::int64_t kNone = -1;
};

/// The coordinate of a slide or a hinge as a polynomial in that of another one, or as a constant. It is an equation of
/// the robot, with an impulse of any size: fingers that move together, or a gear. With the exact cone only.
struct RobotCoupling {
  std::int64_t joint;
  std::int64_t other = kNone;  ///< another slide or hinge

  static constexpr std::int64_t kNone = -1;
};

/// A point of a body that is one with a point of another one, or of the world: how a loop of bodies is closed. A weld
/// holds the orientation of the two, too. Both have an impulse of any size. With the exact cone only.
struct RobotClosure {
  std::int64_t body;
  std::int64_t other = kWorld;
  bool is_weld = false;

  static constexpr std::int64_t kWorld = -1;
};

struct RobotState {
  at::Tensor qpos;  ///< [..., nq]
  at::Tensor qvel;  ///< [..., nv]
};

/// A state with a name, such as one in which a quadruped stands, and the control that belongs to it.
struct RobotKeyframe {
  std::string name;
  RobotState state;
  at::Tensor control;  ///< [a]
};

enum class RobotShapeKind { kBall, kCapsule, kCylinder, kBox, kEllipsoid };

/// What a body looks like, for figures. A shape has no mass and touches nothing.
struct RobotShape {
  std::int64_t body;  ///< -1 for the world
  RobotShapeKind kind;
  /// m: the radius; that of a capsule or a cylinder and, along z, half the distance of its ends; half the edges of a
  /// box, or half the axes of an ellipsoid. The others are not read.
  std::array<double, 3> size;
  std::array<double, 3> center = {};                 ///< m, in the axes of the body
  std::array<double, 4> orientation = {1, 0, 0, 0};  ///< its quaternion in these
};

/// b bodies with p balls and e boxes, j joints with d degrees of freedom, a actuators, h planes, c contacts, k
/// couplings and o closures. All tensors may have batch dimensions in front, and are differentiable.
struct LCP_API Robot {
  std::vector<std::int64_t> parents;  ///< of each body: an earlier one, or -1 for the world
  std::vector<RobotJoint> joints;     ///< body after body, and from the parent on where a body has several
  std::vector<RobotActuator> actuators;
  std::vector<std::int64_t> balls;  ///< how many each body has; they are numbered body after body
  std::vector<std::int64_t> boxes;  ///< the body of each
  std::vector<RobotContact> contacts;
  std::vector<std::string> body_names;  ///< of each body, or none
  std::vector<RobotCoupling> couplings;
  std::vector<RobotClosure> closures;

  at::Tensor mass;            ///< [..., b], kg
  at::Tensor inertia;         ///< [..., b, 3, 3], kg m^2, about the centre of mass, in the axes of the body
  at::Tensor center_of_mass;  ///< [..., b, 3], m, in the axes of the body
  at::Tensor position;        ///< [..., b, 3], m, of the body in the axes of its parent, where its joints are at 0
  at::Tensor orientation;     ///< [..., b, 4], its quaternion there
  at::Tensor axis;      ///< [..., j, 3], of slides and hinges, of length 1, in the axes of the body; else not read
  at::Tensor anchor;    ///< [..., j, 3], m, of hinges and ball joints, in the axes of the body
  at::Tensor range;     ///< [..., j, 2], m or rad, of joints with limits; else not read
  at::Tensor spring;    ///< [..., j, 2], of slides and hinges: N/m or N m/rad, and the coordinate at rest
  at::Tensor damping;   ///< [..., d], N s/m or N m s/rad
  at::Tensor armature;  ///< [..., d], kg or kg m^2
  /// [..., d], N or N m, >= 0: the largest force of dry friction. Undefined: 0. A degree of freedom whose number is 0,
  /// and has no derivative, costs nothing. Friction must be without options.kappa and options.bounce_threshold.
  at::Tensor friction_loss;
  /// [..., k, 5]: q_joint = c_0 + c_1 q_other + .. + c_4 q_other^4. May be undefined where there are no couplings.
  at::Tensor coupling;
  /// [..., o, 2, 3], m: the points of the closures in the axes of their bodies. May be undefined where there are none.
  at::Tensor closure;
  /// [..., o, 4]: of welds, the quaternion of the other body in the axes of the body. May be undefined where there are
  /// no closures; else, of those that are no welds, not read.
  at::Tensor closure_orientation;
  at::Tensor gear;                                        ///< [..., a]
  at::Tensor actuator_force;                              ///< [..., a, 4]: gain, b_0, b_1, b_2
  at::Tensor centers;                                     ///< [..., p, 3], m, of the balls, in the axes of their bodies
  at::Tensor radii;                                       ///< [..., p], m
  at::Tensor normals;                                     ///< [..., h, 3], of length 1
  at::Tensor offsets;                                     ///< [..., h], m
  at::Tensor mu;                                          ///< [..., c], >= 0
  at::Tensor gravity;                                     ///< [..., 3], m/s^2
  double dt;                                              ///< s, > 0
  at::Tensor box_sizes = at::zeros({0, 3}, at::kDouble);  ///< [..., e, 3], m, half the lengths of the edges
  at::Tensor box_centers = at::zeros({0, 3}, at::kDouble);       ///< [..., e, 3], m, in the axes of the body
  at::Tensor box_orientations = at::zeros({0, 4}, at::kDouble);  ///< [..., e, 4], quaternions in these axes

  at::Tensor qpos0 = {};  ///< [..., nq], of default_state; not defined: that of the joints at 0

  std::vector<RobotKeyframe> keyframes = {};
  std::vector<RobotShape> shapes = {};
};

/// The inputs of each row of steps; undefined tensors are 0.
struct RobotInput {
  at::Tensor control = {};  ///< [rows, ..., a]
  at::Tensor forces = {};  ///< [rows, ..., b, 6], on the centres of mass, N, and torques in the axes of the bodies, N m
};

/// The ends of the rows and their impulses: NaN from the first step on that was not solved.
struct RobotSolution {
  RobotState next;    ///< [rows, ...]
  at::Tensor gamma;   ///< [rows, ..., 3 (c + l)], N s: of each contact along (t1, t2, n), then (0, 0, n) of each of the
                      ///< l limits, lower before upper
  at::Tensor status;  ///< [rows, ...], int8, see lcp::Status
  at::Tensor iterations;      ///< [rows, ...], int64
  at::Tensor joint_friction;  ///< [rows, ..., d], N s or N m s: the impulses of dry friction
  at::Tensor coupling;        ///< [rows, ..., k], N s or N m s: the impulses of couplings, along their joints
  at::Tensor closure;  ///< [rows, ..., o, 6]: the impulses of closures on their bodies, N s, and of welds the turning
                       ///< ones, N m s, else 0, in the axes of the world
};

/// Many rows. feedback: of the state before each step, beside the control, with K [..., a, 2 nv] in the tangent space
/// of RobotLinearization; the error of an orientation is as in simulate of a RigidScene. options: those of rigid
/// bodies, without compliant contact; an absent bounce_threshold is infinite, since robots have no restitution. Returns
/// tensors of the batch shape of all arguments, differentiable in all tensors, to the first order. All tensors must be
/// on the CPU. Throws c10::Error for shapes or options that do not fit.
LCP_API RobotSolution simulate(const RobotState& state, const RobotInput& input, std::int64_t rows, const Robot& robot,
                               const RigidOptions& options = {},
                               const std::optional<Feedback<RobotState>>& feedback = std::nullopt);

/// One row, control [..., a] and forces [..., b, 6], as `simulate`; returns tensors [...].
LCP_API RobotSolution step(const RobotState& state, const RobotInput& input, const Robot& robot,
                           const RigidOptions& options = {});

/// The derivative of one row of steps in the tangent space of the coordinates: an orientation changes by a rotation
/// vector in the axes of its body, so that changes of state are (dq, dv), [2 nv].
struct RobotLinearization {
  RobotState next;  ///< [...]
  at::Tensor A;     ///< [..., 2 nv, 2 nv], of the state
  at::Tensor B;     ///< [..., 2 nv, a], of the control
  at::Tensor status;
};

/// control: [..., a]. Exact, but one-sided where contacts or limits change; without gradient. NaN where the step was
/// not solved. Throws as simulate.
LCP_API RobotLinearization linearize(const RobotState& state, const at::Tensor& control, const Robot& robot,
                                     const RigidOptions& options = {});

/// Properties of the steps of a rollout, without gradient.
struct RobotCertificate {
  at::Tensor unsolved;  ///< int64, [...], rows whose status is not 0
  at::Tensor kinked;    ///< int64, [...], rows whose margin is at most the tolerance: the gradient may be one-sided
  at::Tensor residual;  ///< [rows, ...], the largest of a substep, of lcp::certify_friction
  /// [rows, ...], the least of a substep, of lcp::certify_friction, or 0 where the velocities are not unique: how far
  /// its contacts, limits, dry friction and servos are from changing their state. Ranges of controls do not count.
  at::Tensor margin;
  at::Tensor gap;  ///< [rows, ...], m, the least gap of a contact before a substep, < 0 where bodies overlap
};

/// Rolls out as simulate, poses the problem of each step once more, with all contacts that the speeds of bodies may
/// close, and certifies its solution. NaN from the first step on that was not solved, whose gap is known. Throws as
/// simulate, and for options other than the exact cone without bounce_threshold.
LCP_API RobotCertificate certify_rollout(const RobotState& state, const RobotInput& input, std::int64_t rows,
                                         const Robot& robot, const RigidOptions& options = {}, double tolerance = 1e-9);

/// The places of the bodies.
struct RobotPlaces {
  at::Tensor position;  ///< [..., b, 3], m, of the origins of their axes
  at::Tensor rotation;  ///< [..., b, 3, 3]
};
/// Differentiable in all tensors, to any order. Throws as simulate.
LCP_API RobotPlaces places(const at::Tensor& qpos, const Robot& robot);

/// At rest, at qpos0; where that is not defined, free joints at their positions in the world, and all other coordinates
/// 0.
LCP_API RobotState default_state(const Robot& robot);

}  // namespace lcp::physics
