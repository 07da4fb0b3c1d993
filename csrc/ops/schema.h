// The operators' schemas, the checks that every backend shares, and typed handles to call them through the dispatcher.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/SymIntArrayRef.h>
#include <c10/util/DimVector.h>

#include <cstdint>
#include <optional>
#include <string_view>
#include <tuple>

namespace lcp::ops {

using at::Tensor;

struct SolveArguments {
  const std::optional<Tensor>& guess;
  std::string_view method;
  std::string_view ties;
  double kappa;
  std::optional<double> tolerance;
  std::optional<std::int64_t> max_pivots;
};

/// Refuses sparse tensors before the dispatcher does, in less telling words.
void check_layout(const Tensor& M, const Tensor& q);

/// The arguments of lcp::solve. Throws c10::Error; returns the broadcast batch dimensions.
c10::SymDimVector check_solve(const Tensor& M, const Tensor& q, const SolveArguments& arguments);

/// Internal operators: M [..., n, n], vectors [..., n]. Returns the broadcast batch dimensions.
c10::SymDimVector check_derivative(const Tensor& M, std::initializer_list<const Tensor*> vectors);

/// The shape [batch..., n] with n from M.
c10::SymDimVector vector_shape(const c10::SymDimVector& batch, const Tensor& M);

// Handles to the operators: `call` goes through the whole dispatcher, `redispatch` to the keys that are left.

using SolveOp = c10::TypedOperatorHandle<std::tuple<Tensor, Tensor, Tensor>(
    const Tensor& M, const Tensor& q, const std::optional<Tensor>& guess, std::string_view method,
    std::string_view ties, double kappa, std::optional<double> tolerance, std::optional<std::int64_t> max_pivots)>;
const SolveOp& solve_op();  ///< see lcp/solve.h

// The linear maps J and J' of csrc/solver/active_set.h. Every derivative of lcp::solve, of any order, is made of them:
//   d(z, w) = J (dM z + dq);  d(J r) = J (dM (J r)_z + dr);  d(J' g) = J' (dg_z + dM' t, dg_w),  t = J' g.
using TangentOp = c10::TypedOperatorHandle<std::tuple<Tensor, Tensor>(const Tensor& M, const Tensor& z, const Tensor& w,
                                                                      const Tensor& r)>;
const TangentOp& solve_tangent_op();

using AdjointOp = c10::TypedOperatorHandle<Tensor(const Tensor& M, const Tensor& z, const Tensor& w, const Tensor& g_z,
                                                  const Tensor& g_w)>;
const AdjointOp& solve_adjoint_op();

// t x' summed over the batch dimensions that `size` = [..., n, m] lacks or has as 1, in an order that does not depend
// on the number of threads. A NaN in x counts as 0: it is the z of an unsolved element, whose t says what to do.
using SumOuterOp = c10::TypedOperatorHandle<Tensor(const Tensor& t, const Tensor& x, c10::SymIntArrayRef size)>;
const SumOuterOp& sum_outer_op();

}  // namespace lcp::ops
