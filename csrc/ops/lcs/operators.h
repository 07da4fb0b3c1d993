// Rollouts of linear complementarity systems with k states, m inputs and n pairs over T steps.
#pragma once

#include <c10/util/OptionalArrayRef.h>

#include "ops/solve/operators.h"

namespace lcp::ops {

// A result of each step. In memory the steps are before the batch, so that a walk through time writes one step behind
// another.
constexpr Result of_each_step(std::string_view name, Sizes sizes, at::ScalarType dtype = at::kFloat) {
  return {name, sizes, dtype, true};
}

using OptionalCone = c10::OptionalArrayRef<c10::SymInt>;

/// The pairs of cone, none where it is absent.
inline c10::SymIntArrayRef pairs_of(const OptionalCone& cone) { return cone ? *cone : c10::SymIntArrayRef(); }

/// Checks that cone is empty or has a pair, or -1, for each pair.
void check_cone(const Call& call);

inline constexpr Argument kCone = flag("SymInt[]? cone=None");
inline constexpr Argument kStateMatrix = tensor("Tensor A", "k k");
inline constexpr Argument kInputMatrix = tensor("Tensor B", "k m");
inline constexpr Argument kForceMatrix = tensor("Tensor D", "k n");
inline constexpr Argument kSlackMatrix = tensor("Tensor G", "k n");
inline constexpr Argument kDrift = tensor("Tensor d", "k");
inline constexpr Argument kPairsOfState = tensor("Tensor E", "n k");
inline constexpr Argument kPairsOfInput = tensor("Tensor H", "n m");
inline constexpr Argument kPairs = matrix("Tensor M");
inline constexpr Argument kFirstState = tensor("Tensor x", "k");
inline constexpr Argument kStepInputs = tensor("Tensor u", "T m");

/// See lcp/simulate_lcs.h.
inline constexpr Operator kSimulateLcs("simulate_lcs", Operator::Kind::kDifferentiable,
                                       {kStateMatrix, kInputMatrix, kForceMatrix, kSlackMatrix, kDrift, kPairsOfState,
                                        kPairsOfInput, kPairs, vector("Tensor q"), kFirstState, kStepInputs, kCone,
                                        kTies, kTolerance},
                                       {of_each_step("x_next", "T k"), of_each_step("z", "T n"),
                                        of_each_step("w", "T n"), of_each_step("status", "T", at::kChar),
                                        of_each_step("residual", "T")},
                                       check_cone);

/// The same and the complementary basis of each step.
inline constexpr Operator kSimulateLcsWithBasis(
    "_simulate_lcs_with_basis", Operator::Kind::kDifferentiable,
    {kStateMatrix, kInputMatrix, kForceMatrix, kSlackMatrix, kDrift, kPairsOfState, kPairsOfInput, kPairs,
     vector("Tensor q"), kFirstState, kStepInputs, kCone, kTies, kTolerance},
    {of_each_step("x_next", "T k"), of_each_step("z", "T n"), of_each_step("w", "T n"),
     of_each_step("status", "T", at::kChar), of_each_step("residual", "T"), of_each_step("basis", "T n", at::kChar)},
    check_cone);

/// The gradients of a rollout, by csrc/lcs/adjoint.h, those of the matrices and vectors for each trajectory. wanted:
/// bit i is set where result i is wanted; the others are not filled.
inline constexpr Operator kSimulateLcsAdjoint(
    "_simulate_lcs_adjoint", Operator::Kind::kDifferentiable,
    {kStateMatrix, kInputMatrix, kForceMatrix, kSlackMatrix, kPairsOfState, kPairsOfInput, kPairs, kFirstState,
     kStepInputs, tensor("Tensor x_next", "T k"), tensor("Tensor z", "T n"), tensor("Tensor w", "T n"),
     Argument{.kind = Argument::Kind::kTensor, .declaration = "Tensor basis", .sizes = "T n", .dtype = at::kChar},
     tensor("Tensor g_x_next", "T k"), tensor("Tensor g_z", "T n"), tensor("Tensor g_w", "T n"), flag("SymInt[] cone"),
     flag("str ties", check_ties), flag("int wanted")},
    {{"A", "k k"},
     {"B", "k m"},
     {"D", "k n"},
     {"G", "k n"},
     {"d", "k"},
     {"E", "n k"},
     {"H", "n m"},
     {"M", "n n"},
     {"q", "n"},
     {"x", "k"},
     of_each_step("u", "T m")},
    check_cone);

inline const auto& simulate_lcs_op() {
  return handle<Tensors<5>(const Tensor& A, const Tensor& B, const Tensor& D, const Tensor& G, const Tensor& d,
                           const Tensor& E, const Tensor& H, const Tensor& M, const Tensor& q, const Tensor& x,
                           const Tensor& u, OptionalCone cone, std::string_view ties, std::optional<double> tolerance),
                kSimulateLcs>();
}
inline const auto& simulate_lcs_with_basis_op() {
  return handle<Tensors<6>(const Tensor& A, const Tensor& B, const Tensor& D, const Tensor& G, const Tensor& d,
                           const Tensor& E, const Tensor& H, const Tensor& M, const Tensor& q, const Tensor& x,
                           const Tensor& u, OptionalCone cone, std::string_view ties, std::optional<double> tolerance),
                kSimulateLcsWithBasis>();
}
inline const auto& simulate_lcs_adjoint_op() {
  return handle<Tensors<11>(const Tensor& A, const Tensor& B, const Tensor& D, const Tensor& G, const Tensor& E,
                            const Tensor& H, const Tensor& M, const Tensor& x, const Tensor& u, const Tensor& x_next,
                            const Tensor& z, const Tensor& w, const Tensor& basis, const Tensor& g_x_next,
                            const Tensor& g_z, const Tensor& g_w, c10::SymIntArrayRef cone, std::string_view ties,
                            std::int64_t wanted),
                kSimulateLcsAdjoint>();
}

}  // namespace lcp::ops
