// Rollouts of linear complementarity systems with k states, m inputs and n pairs over T steps.
#pragma once

#include <c10/util/OptionalArrayRef.h>

#include <optional>

#include "ops/solve/operators.h"

namespace lcp::ops {

using OptionalCone = at::OptionalIntArrayRef;

/// Throws c10::Error unless cone is empty or has one of the n pairs, or -1, for each of them.
void check_cone(at::IntArrayRef cone, const c10::SymInt& n);

/// See lcp/simulate_lcs.h.
inline constexpr Operator kSimulateLcs(
    "simulate_lcs", Operator::Kind::kComposite,
    {tensor("Tensor A", "k k"), tensor("Tensor B", "k m"), tensor("Tensor D", "k n"), tensor("Tensor G", "k n"),
     tensor("Tensor d", "k"), tensor("Tensor E", "n k"), tensor("Tensor H", "n m"), matrix("Tensor M"),
     vector("Tensor q"), tensor("Tensor x", "k"), tensor("Tensor u", "T m"), flag("int[]? cone=None"), kTies,
     kTolerance, tensor("Tensor? K=None", {}), tensor("Tensor? reference=None", {})},
    {of_each_step("x_next", "T k"), of_each_step("z", "T n"), of_each_step("w", "T n"),
     of_each_step("status", "T", at::kChar), of_each_step("residual", "T")});

inline const auto& simulate_lcs_op() {
  return handle<Tensors<5>(const Tensor& A, const Tensor& B, const Tensor& D, const Tensor& G, const Tensor& d,
                           const Tensor& E, const Tensor& H, const Tensor& M, const Tensor& q, const Tensor& x,
                           const Tensor& u, OptionalCone cone, std::string_view ties, std::optional<double> tolerance,
                           const std::optional<Tensor>& K, const std::optional<Tensor>& reference),
                kSimulateLcs>();
}

}  // namespace lcp::ops
