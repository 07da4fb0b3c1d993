// Rollouts of the systems of csrc/systems with k states, m inputs, p parameters and n pairs over T steps.
#pragma once

#include <optional>

#include "ops/lcs/operators.h"

namespace lcp::ops {

/// Throws c10::Error where there is no such system, or where its numbers are others.
void check_system(const Call& call);

inline constexpr Argument kSystemParameters = tensor("Tensor parameters", "p");
inline constexpr Argument kPairDirections = tensor("Tensor D", "2 n");
inline constexpr Argument kSystemName = flag("str system");

/// See csrc/systems/kernels.h; w and basis are for the walk backward. with_basis: whether basis is filled.
inline constexpr Operator kSystemWalk("_system_walk", Operator::Kind::kNotDifferentiable,
                                      {kSystemParameters, kPairDirections, kFirstState, kStepInputs, kSystemName,
                                       flag("float? tolerance", check_positive), flag("bool with_basis")},
                                      {of_each_step("x_next", "T k"), of_each_step("z", "T n"),
                                       of_each_step("w", "T n"), of_each_step("residual", "T"),
                                       of_each_step("status", "T", at::kChar), of_each_step("basis", "T n", at::kChar)},
                                      check_system);

inline constexpr Argument kWalkedStates = tensor("Tensor x_next", "T k"), kWalkedImpulses = tensor("Tensor z", "T n"),
                          kWalkedSlacks = tensor("Tensor w", "T n");
inline constexpr Argument kWalkedStatus = {
    .kind = Argument::Kind::kTensor, .declaration = "Tensor status", .sizes = "T", .dtype = at::kChar};
inline constexpr Argument kWalkedBasis = {
    .kind = Argument::Kind::kTensor, .declaration = "Tensor basis", .sizes = "T n", .dtype = at::kChar};

/// The gradients of a walk, by csrc/systems/adjoint.h, those of the parameters for each trajectory. wanted: bit i is
/// set where result i is wanted; the others are not filled.
inline constexpr Operator kSystemWalkAdjoint("_system_walk_adjoint", Operator::Kind::kNotDifferentiable,
                                             {kSystemParameters, kPairDirections, kFirstState, kStepInputs,
                                              kWalkedStates, kWalkedImpulses, kWalkedSlacks, kWalkedStatus,
                                              kWalkedBasis, tensor("Tensor g_x_next", "T k"),
                                              tensor("Tensor g_z", "T n"), kSystemName, flag("str ties", check_ties),
                                              flag("int wanted")},
                                             {{"parameters", "p"}, {"x", "k"}, of_each_step("u", "T m")}, check_system);

/// The changes of a walk, by csrc/systems/tangents.h, for those of its parameters, its first state and its inputs.
inline constexpr Operator kSystemWalkTangent(
    "_system_walk_tangent", Operator::Kind::kNotDifferentiable,
    {kSystemParameters, kPairDirections, kFirstState, kStepInputs, kWalkedStates, kWalkedImpulses, kWalkedSlacks,
     kWalkedStatus, kWalkedBasis, tensor("Tensor d_parameters", "p"), tensor("Tensor d_x", "k"),
     tensor("Tensor d_u", "T m"), kSystemName, flag("str ties", check_ties)},
    {of_each_step("d_x_next", "T k"), of_each_step("d_z", "T n")}, check_system);

}  // namespace lcp::ops
