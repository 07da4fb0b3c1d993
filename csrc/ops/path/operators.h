// The smoothed derivative: the derivative of the point z_i w_i = kappa of the central path near a solution. It is made
// of the linear maps K and K' of csrc/solver/path_derivative.h:
//
//   d(z, w) = K (dM z + dq, 0),  with a = w, b = z;
//   d K(r, s) = K (dM x + dr, ds - da x - db y),  (x, y) = K(r, s);
//   d K'(g) = K' (dg_x + dM' t_r - da t_s, dg_y - db t_s),  (t_r, t_s) = K'(g).
#pragma once

#include "ops/solve/operators.h"

namespace lcp::ops {

/// The point of the path near the solution z_0, NaN where none is found; w_i = 0 for i < num_equations.
inline constexpr Operator kPathPoint("_path_point", Operator::Kind::kDifferentiable,
                                     {matrix("Tensor M"), vector("Tensor q"), vector("Tensor z_0"),
                                      flag("int num_equations"), flag("float kappa"), kSizes},
                                     {{"z", "n"}, {"w", "n"}}, check_num_equations);

/// K (r, s).
inline constexpr Operator kPathTangent("_path_tangent", Operator::Kind::kDifferentiable,
                                       {matrix("Tensor M"), vector("Tensor a"), vector("Tensor b"), vector("Tensor r"),
                                        vector("Tensor s"), kSizes},
                                       {{"x", "n"}, {"y", "n"}});

/// K' (g_x, g_y).
inline constexpr Operator kPathAdjoint("_path_adjoint", Operator::Kind::kDifferentiable,
                                       {matrix("Tensor M"), vector("Tensor a"), vector("Tensor b"),
                                        vector("Tensor g_x"), vector("Tensor g_y"), kSizes},
                                       {{"t_r", "n"}, {"t_s", "n"}});

inline const auto& path_point_op() {
  return handle<Tensors<2>(const Tensor& M, const Tensor& q, const Tensor& z_0, std::int64_t num_equations,
                           double kappa, const std::optional<Tensor>& sizes),
                kPathPoint>();
}
inline const auto& path_tangent_op() {
  return handle<Tensors<2>(const Tensor& M, const Tensor& a, const Tensor& b, const Tensor& r, const Tensor& s,
                           const std::optional<Tensor>& sizes),
                kPathTangent>();
}
inline const auto& path_adjoint_op() {
  return handle<Tensors<2>(const Tensor& M, const Tensor& a, const Tensor& b, const Tensor& g_x, const Tensor& g_y,
                           const std::optional<Tensor>& sizes),
                kPathAdjoint>();
}

}  // namespace lcp::ops
