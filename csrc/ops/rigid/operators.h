// Rollouts of b rigid bodies with p balls, h planes and c pairs that may touch, over T steps. They compute in float64
// alone: their caller converts.
#pragma once

#include <optional>

#include "ops/lcs/operators.h"

namespace lcp::ops {

/// Of each pair four numbers: body, ball, other body or -1, and the plane, or behind the planes the other ball. Bodies,
/// balls and planes are numbered from 0, the balls of all bodies together. Throws c10::Error where there are not four
/// for each mu, where one is out of its range, and where the tensors are not of float64.
void check_rigid(const Call& call);

inline constexpr Argument kMasses = tensor("Tensor mass", "b");
inline constexpr Argument kInertias = tensor("Tensor inertia", "9b");
inline constexpr Argument kCenters = tensor("Tensor centers", "3p");
inline constexpr Argument kRadii = tensor("Tensor radii", "p");
inline constexpr Argument kPlaneNormals = tensor("Tensor normals", "3h");
inline constexpr Argument kPlaneOffsets = tensor("Tensor offsets", "h");
inline constexpr Argument kFieldOfGravity = tensor("Tensor gravity", "3");
inline constexpr Argument kFrictionOfPairs = tensor("Tensor mu", "c");
inline constexpr Argument kRestitution = tensor("Tensor restitution", "c");
inline constexpr Argument kPositions = tensor("Tensor position", "3b");
inline constexpr Argument kOrientations = tensor("Tensor orientation", "4b");
inline constexpr Argument kVelocities = tensor("Tensor velocity", "3b");
inline constexpr Argument kAngularVelocities = tensor("Tensor angular_velocity", "3b");
inline constexpr Argument kForces = tensor("Tensor u", "T 6b");
inline constexpr Argument kDrag = tensor("Tensor drag", "b");
inline constexpr Argument kRigidPairs = flag("SymInt[] pairs");
inline constexpr Argument kTimeStep = flag("float dt", check_positive);
inline constexpr Argument kBounceThreshold = flag("float? bounce_threshold");
inline constexpr Argument kStabilization = flag("float stabilization");

/// lcp::physics::simulate of lcp/physics/rigid_scene.h with the exact cone, by csrc/rigid/simulator.h: the ends of the
/// steps, the impulses, the pairs that were chosen, the status and the Newton steps. A quaternion or a matrix takes its
/// numbers row after row, and those of a body stand behind those of another.
inline constexpr Operator kRigidWalk(
    "_rigid_walk", Operator::Kind::kNotDifferentiable,
    {kMasses,       kInertias,       kCenters,           kRadii,         kPlaneNormals,
     kPlaneOffsets, kFieldOfGravity, kFrictionOfPairs,   kRestitution,   kPositions,
     kOrientations, kVelocities,     kAngularVelocities, kForces,        kDrag,
     kRigidPairs,   kTimeStep,       kBounceThreshold,   kStabilization, flag("float tolerance", check_positive)},
    {of_each_step("next_position", "T 3b"), of_each_step("next_orientation", "T 4b"),
     of_each_step("next_velocity", "T 3b"), of_each_step("next_angular_velocity", "T 3b"),
     of_each_step("gamma", "T 3c"), of_each_step("chosen", "T c", at::kBool), of_each_step("status", "T", at::kChar),
     of_each_step("iterations", "T", at::kLong)},
    check_rigid);

/// The gradients of a walk, by csrc/rigid/adjoint.h, those of the parameters for each trajectory. wanted: bit i is set
/// where result i is wanted; the others are not filled.
inline constexpr Operator kRigidWalkAdjoint(
    "_rigid_walk_adjoint", Operator::Kind::kNotDifferentiable,
    {kMasses,
     kInertias,
     kCenters,
     kRadii,
     kPlaneNormals,
     kPlaneOffsets,
     kFieldOfGravity,
     kFrictionOfPairs,
     kRestitution,
     kPositions,
     kOrientations,
     kVelocities,
     kAngularVelocities,
     kForces,
     kDrag,
     tensor("Tensor next_position", "T 3b"),
     tensor("Tensor next_orientation", "T 4b"),
     tensor("Tensor next_velocity", "T 3b"),
     tensor("Tensor next_angular_velocity", "T 3b"),
     tensor("Tensor gamma", "T 3c"),
     Argument{.kind = Argument::Kind::kTensor, .declaration = "Tensor chosen", .sizes = "T c", .dtype = at::kBool},
     Argument{.kind = Argument::Kind::kTensor, .declaration = "Tensor status", .sizes = "T", .dtype = at::kChar},
     tensor("Tensor g_position", "T 3b"),
     tensor("Tensor g_orientation", "T 4b"),
     tensor("Tensor g_velocity", "T 3b"),
     tensor("Tensor g_angular_velocity", "T 3b"),
     tensor("Tensor g_gamma", "T 3c"),
     kRigidPairs,
     kTimeStep,
     kBounceThreshold,
     kStabilization,
     flag("int wanted")},
    {{"mass", "b"},
     {"inertia", "9b"},
     {"centers", "3p"},
     {"radii", "p"},
     {"normals", "3h"},
     {"offsets", "h"},
     {"gravity", "3"},
     {"mu", "c"},
     {"restitution", "c"},
     {"position", "3b"},
     {"orientation", "4b"},
     {"velocity", "3b"},
     {"angular_velocity", "3b"},
     of_each_step("u", "T 6b"),
     {"drag", "b"}},
    check_rigid);

}  // namespace lcp::ops
