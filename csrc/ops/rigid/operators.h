// Rollouts of b rigid bodies with p balls, h planes and c pairs that may touch, over T steps. They compute in float64
// alone: their caller converts.
#pragma once

#include <optional>

#include "ops/lcs/operators.h"
#include "rigid/scene.h"

namespace lcp::ops {

/// Of each pair four numbers: body, ball, other body or -1, and the plane, or behind the planes the other ball. Bodies,
/// balls and planes are numbered from 0, the balls of all bodies together. Throws c10::Error where there are not four
/// for each mu, where one is out of its range, where the tensors are not of float64, and where the law does not fit.
void check_rigid(const Call& call);
/// The same of the adjoint, which needs the unknowns.
void check_rigid_adjoint(const Call& call);

/// Throws c10::Error where there is no such formulation.
rigid::Formulation formulation_named(std::string_view name);

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
inline constexpr Argument kStiffness = tensor("Tensor stiffness", "c");
inline constexpr Argument kDissipation = tensor("Tensor dissipation", "c");
inline constexpr Argument kFormulation = flag("str formulation");
inline constexpr Argument kDirectionsOfFriction = flag("int directions");
inline constexpr Argument kAngleOfFriction = flag("float angle");
inline constexpr Argument kSigma = flag("float sigma", check_positive);
inline constexpr Argument kBeta = flag("float beta", check_nonnegative);

/// lcp::physics::simulate of lcp/physics/rigid_scene.h, by csrc/rigid/simulator.h: the ends of the steps, the impulses,
/// what the walk backward needs besides, the rigid::Choice of each pair, the status and the Newton steps. A quaternion
/// or a matrix takes its numbers row after row, and those of a body stand behind those of another. num_unknowns: of all
/// pairs, see rigid::unknowns_of, or 0 where no walk backward will follow.
inline constexpr Operator kRigidWalk("_rigid_walk", Operator::Kind::kNotDifferentiable,
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
                                      kStiffness,
                                      kDissipation,
                                      kRigidPairs,
                                      kTimeStep,
                                      kBounceThreshold,
                                      kStabilization,
                                      kFormulation,
                                      kDirectionsOfFriction,
                                      kAngleOfFriction,
                                      kSigma,
                                      kBeta,
                                      size_flag("int num_unknowns", "s"),
                                      flag("float tolerance", check_positive)},
                                     {of_each_step("next_position", "T 3b"), of_each_step("next_orientation", "T 4b"),
                                      of_each_step("next_velocity", "T 3b"),
                                      of_each_step("next_angular_velocity", "T 3b"), of_each_step("gamma", "T 3c"),
                                      of_each_step("unknowns", "T s"), of_each_step("states", "T s", at::kChar),
                                      of_each_step("chosen", "T c", at::kChar), of_each_step("status", "T", at::kChar),
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
     kStiffness,
     kDissipation,
     tensor("Tensor next_position", "T 3b"),
     tensor("Tensor next_orientation", "T 4b"),
     tensor("Tensor next_velocity", "T 3b"),
     tensor("Tensor next_angular_velocity", "T 3b"),
     tensor("Tensor gamma", "T 3c"),
     tensor("Tensor unknowns", "T s"),
     Argument{.kind = Argument::Kind::kTensor, .declaration = "Tensor states", .sizes = "T s", .dtype = at::kChar},
     Argument{.kind = Argument::Kind::kTensor, .declaration = "Tensor chosen", .sizes = "T c", .dtype = at::kChar},
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
     kFormulation,
     kDirectionsOfFriction,
     kAngleOfFriction,
     kSigma,
     kBeta,
     flag("float tolerance", check_positive),
     flag("str ties", check_ties),
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
     {"drag", "b"},
     {"stiffness", "c"},
     {"dissipation", "c"}},
    check_rigid_adjoint);

}  // namespace lcp::ops
