// The derivative of a solve for its active set: the linear maps J and J' of csrc/solver/active_set.h, of which
// derivatives of all orders are made:
//
//   d(z, w) = J (dM z + dq);  d(J r) = J (dM (J r)_z + dr);  d(J' g) = J' (dg_z + dM' t, dg_w),  t = J' g.
#pragma once

#include "ops/by_size.h"

namespace lcp::ops {

inline constexpr Argument kTiedActive = flag("bool tied_active");

/// Copies of z and w, the solution for M and q, with the derivative of one linear piece of the solution map. It is an
/// operator so that under torch.func the derivatives of every level are of that piece.
inline constexpr Operator kPiece("_piece", Operator::Kind::kDifferentiable,
                                 {matrix("Tensor M"), vector("Tensor q"), vector("Tensor z"), vector("Tensor w"),
                                  basis(), kTiedActive, kSizes},
                                 {{"z", "n"}, {"w", "n"}});

/// J r.
inline constexpr Operator kTangent("_tangent", Operator::Kind::kDifferentiable,
                                   {matrix("Tensor M"), basis(), vector("Tensor r"), kTiedActive, kSizes},
                                   {{"dz", "n"}, {"dw", "n"}});

/// J' (g_z, g_w).
inline constexpr Operator kAdjoint("_adjoint", Operator::Kind::kDifferentiable,
                                   {matrix("Tensor M"), basis(), vector("Tensor g_z"), vector("Tensor g_w"),
                                    kTiedActive, kSizes},
                                   {{"t", "n"}});

/// The gradient of a matrix: t x' summed over the batch dimensions that `size` = [..., n, m] lacks or has as 1. The
/// order of the sum does not depend on the number of threads. A NaN in x counts as 0: x is then the z of an element
/// without a solution, whose gradient depends on t alone.
inline constexpr Operator kSumOuter("_sum_outer", Operator::Kind::kDifferentiable,
                                    {vector("Tensor t"), tensor("Tensor x", "m"), shape_of_result("SymInt[] size")},
                                    {{"sum", "n m"}});

inline const auto& piece_op() {
  return handle<Tensors<2>(const Tensor& M, const Tensor& q, const Tensor& z, const Tensor& w, const Tensor& basis,
                           bool tied_active, const std::optional<Tensor>& sizes),
                kPiece>();
}
inline const auto& tangent_op() {
  return handle<Tensors<2>(const Tensor& M, const Tensor& basis, const Tensor& r, bool tied_active,
                           const std::optional<Tensor>& sizes),
                kTangent>();
}
inline const auto& adjoint_op() {
  return handle<Tensor(const Tensor& M, const Tensor& basis, const Tensor& g_z, const Tensor& g_w, bool tied_active,
                       const std::optional<Tensor>& sizes),
                kAdjoint>();
}
inline const auto& sum_outer_op() {
  return handle<Tensor(const Tensor& t, const Tensor& x, c10::SymIntArrayRef size), kSumOuter>();
}

}  // namespace lcp::ops
