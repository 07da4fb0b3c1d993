// Rollouts of a body with p parameters and c contacts on compliant ground over T steps. They compute in float64 alone:
// their caller converts.
#pragma once

#include "compliant/step.h"
#include "ops/rigid/operators.h"

namespace lcp::ops {

/// Throws c10::Error where there is no such body, where its numbers are others, or the tensors are not of float64.
void check_compliant(const Call& call);

/// Throws c10::Error where there is no such body.
compliant::Form form_named(std::string_view name);

inline constexpr Argument kCompliantParameters = tensor("Tensor parameters", "p");
inline constexpr Argument kCompliantState = tensor("Tensor x", "6");
inline constexpr Argument kCompliantForces = tensor("Tensor u", "T 3");
inline constexpr Argument kCompliantBody = flag("str body");

/// See csrc/compliant/simulator.h; y is for the walk backward.
inline constexpr Operator kCompliantWalk(
    "_compliant_walk", Operator::Kind::kNotDifferentiable,
    {kCompliantParameters, kCompliantState, kCompliantForces, kCompliantBody, size_flag("int contacts", "c"), kTimeStep,
     kSigma, kBeta, flag("float? tolerance", check_positive), flag("int? max_iterations", check_count)},
    {of_each_step("x_next", "T 6"), of_each_step("gamma", "T 3c"), of_each_step("y", "T 3c"),
     of_each_step("status", "T", at::kChar), of_each_step("iterations", "T", at::kLong)},
    check_compliant);

/// The gradients of a walk, by csrc/compliant/adjoint.h, those of the parameters for each trajectory. wanted: bit i is
/// set where result i is wanted; the others are not filled.
inline constexpr Operator kCompliantWalkAdjoint(
    "_compliant_walk_adjoint", Operator::Kind::kNotDifferentiable,
    {kCompliantParameters, kCompliantState, kCompliantForces, tensor("Tensor x_next", "T 6"),
     tensor("Tensor gamma", "T 3c"), tensor("Tensor y", "T 3c"),
     Argument{.kind = Argument::Kind::kTensor, .declaration = "Tensor status", .sizes = "T", .dtype = at::kChar},
     tensor("Tensor g_x_next", "T 6"), tensor("Tensor g_gamma", "T 3c"), kCompliantBody, kTimeStep, kSigma, kBeta,
     flag("int wanted")},
    {{"parameters", "p"}, {"x", "6"}, of_each_step("u", "T 3")}, check_compliant);

}  // namespace lcp::ops
