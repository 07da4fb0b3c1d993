// Reverse and forward mode of the smoothed derivative, and so of any order.
#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/masked_fill.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/zeros_like.h>

#include "ops/derivative.h"
#include "ops/path/operators.h"
#include "ops/registration.h"

namespace lcp::ops {
namespace {

// t x elementwise; a NaN in x counts as 0, as in sum_outer.
Tensor product(const Tensor& t, const Tensor& x) { return t * x.masked_fill(x.isnan(), 0); }

// The a and b of solver/path_derivative.h for a point of the central path with `num_equations` equations.
Tensors<2> path_coefficients(const Tensor& z, const Tensor& w, std::int64_t num_equations) {
  if (num_equations == 0) return {w, z};
  const auto behind = [num_equations](const Tensor& first, const Tensor& x) {
    return at::cat({first, x.narrow_symint(-1, num_equations, x.sym_size(-1) - num_equations)}, -1);
  };
  const Tensor equations = z.narrow_symint(-1, 0, num_equations);
  return {behind(at::zeros_like(equations), w), behind(at::ones_like(equations), z)};
}

// Backward of (z, w) with z_i w_i = kappa: d(z, w) = K (dM z + dq, 0).
variable_list path_point_backward(const variable_list& g, const Needs& needs, const Tensor& M, const Tensor& z,
                                  const Tensor& w, const Shape& q_shape, const std::int64_t& num_equations,
                                  const std::optional<Tensor>& sizes) {
  if (!g[0].defined() && !g[1].defined()) return {Tensor(), Tensor()};
  const auto [a, b] = path_coefficients(z, w, num_equations);
  const Tensor t = std::get<0>(path_adjoint_op().call(M, a, b, or_zeros(g[0], z), or_zeros(g[1], w), sizes));
  return {needs[0] ? sum_outer(t, z, M.sym_sizes()) : Tensor(), needs[1] ? sum_to_shape(t, q_shape) : Tensor()};
}

// The gradients of M, a and b in the backward of (x, y) = K (r, s) and in the backward of (t_r, t_s) = K' g. Both have
// the form p' d = t_r' (dM x + dr) + t_s' (ds - da x - db y). One of (x, y) and (t_r, t_s) is the saved output, the
// other one the map of the incoming gradient p.
variable_list path_gradients(const Needs& needs, const Tensor& M, const Tensor& t_r, const Tensor& t_s, const Tensor& x,
                             const Tensor& y, const Shape& a_shape, const Shape& b_shape) {
  return {needs[0] ? sum_outer(t_r, x, M.sym_sizes()) : Tensor(),
          needs[1] ? sum_to_shape(-product(t_s, x), a_shape) : Tensor(),
          needs[2] ? sum_to_shape(-product(t_s, y), b_shape) : Tensor()};
}

variable_list path_tangent_backward(const variable_list& p, const Needs& needs, const Tensor& M, const Tensor& a,
                                    const Tensor& b, const Tensor& x, const Tensor& y, const Shape& r_shape,
                                    const Shape& s_shape, const std::optional<Tensor>& sizes) {
  if (!p[0].defined() && !p[1].defined()) return variable_list(5);
  const auto [t_r, t_s] = path_adjoint_op().call(M, a, b, or_zeros(p[0], x), or_zeros(p[1], y), sizes);
  variable_list gradients = path_gradients(needs, M, t_r, t_s, x, y, shape_of(a), shape_of(b));
  gradients.push_back(needs[3] ? sum_to_shape(t_r, r_shape) : Tensor());
  gradients.push_back(needs[4] ? sum_to_shape(t_s, s_shape) : Tensor());
  return gradients;
}

variable_list path_adjoint_backward(const variable_list& p, const Needs& needs, const Tensor& M, const Tensor& a,
                                    const Tensor& b, const Tensor& t_r, const Tensor& t_s, const Shape& g_x_shape,
                                    const Shape& g_y_shape, const std::optional<Tensor>& sizes) {
  if (!p[0].defined() && !p[1].defined()) return variable_list(5);
  const auto [x, y] = path_tangent_op().call(M, a, b, or_zeros(p[0], t_r), or_zeros(p[1], t_s), sizes);
  variable_list gradients = path_gradients(needs, M, t_r, t_s, x, y, shape_of(a), shape_of(b));
  gradients.push_back(needs[3] ? sum_to_shape(x, g_x_shape) : Tensor());
  gradients.push_back(needs[4] ? sum_to_shape(y, g_y_shape) : Tensor());
  return gradients;
}

Tensors<2> path_point_autograd(c10::DispatchKeySet keys, const Tensor& M, const Tensor& q, const Tensor& z_0,
                               std::int64_t num_equations, double kappa, const std::optional<Tensor>& sizes) {
  const auto node = make_node<path_point_backward>("LcpPathPointBackward", M, q);
  auto [z, w] = below_autograd(path_point_op(), keys, M, q, z_0, num_equations, kappa, sizes);
  set_history(node, {z, w});
  if (has_tangent(M, q)) {
    const Tensor dM = tangent(M);
    const Tensor r = plus(dM.defined() ? times_tangent(dM, primal(z)) : Tensor(), tangent(q));
    const auto [a, b] = path_coefficients(primal(z), primal(w), num_equations);
    const auto [dz, dw] = path_tangent_op().call(primal(M), a, b, r, at::zeros_like(r), sizes);
    z._set_fw_grad(dz, 0, false);
    w._set_fw_grad(dw, 0, false);
  }
  if (node) node->save(M, z, w, shape_of(q), num_equations, sizes);
  return {z, w};
}

// ds - da x - db y.
Tensor complementarity_change(const Tensor& s, const Tensor& a, const Tensor& b, const Tensor& x, const Tensor& y) {
  Tensor change = tangent(s);
  if (tangent(a).defined()) change = plus(change, -product(tangent(a), x));
  if (tangent(b).defined()) change = plus(change, -product(tangent(b), y));
  return change;
}

Tensors<2> path_tangent_autograd(c10::DispatchKeySet keys, const Tensor& M, const Tensor& a, const Tensor& b,
                                 const Tensor& r, const Tensor& s, const std::optional<Tensor>& sizes) {
  const auto node = make_node<path_tangent_backward>("LcpPathTangentBackward", M, a, b, r, s);
  auto [x, y] = below_autograd(path_tangent_op(), keys, M, a, b, r, s, sizes);
  set_history(node, {x, y});
  if (has_tangent(M, a, b, r, s)) {
    const Tensor dM = tangent(M);
    const Tensor dr = plus(dM.defined() ? times_tangent(dM, primal(x)) : Tensor(), tangent(r));
    const Tensor ds = complementarity_change(s, a, b, primal(x), primal(y));
    const auto [dx, dy] = path_tangent_op().call(primal(M), primal(a), primal(b), or_zeros(dr, primal(x)),
                                                 or_zeros(ds, primal(x)), sizes);
    x._set_fw_grad(dx, 0, false);
    y._set_fw_grad(dy, 0, false);
  }
  if (node) node->save(M, a, b, x, y, shape_of(r), shape_of(s), sizes);
  return {x, y};
}

Tensors<2> path_adjoint_autograd(c10::DispatchKeySet keys, const Tensor& M, const Tensor& a, const Tensor& b,
                                 const Tensor& g_x, const Tensor& g_y, const std::optional<Tensor>& sizes) {
  const auto node = make_node<path_adjoint_backward>("LcpPathAdjointBackward", M, a, b, g_x, g_y);
  auto [t_r, t_s] = below_autograd(path_adjoint_op(), keys, M, a, b, g_x, g_y, sizes);
  set_history(node, {t_r, t_s});
  if (has_tangent(M, a, b, g_x, g_y)) {
    const Tensor dM = tangent(M);
    Tensor dg_x = plus(dM.defined() ? times(dM.mT(), primal(t_r)) : Tensor(), tangent(g_x));
    Tensor dg_y = tangent(g_y);
    if (tangent(a).defined()) dg_x = plus(dg_x, -product(primal(t_s), tangent(a)));
    if (tangent(b).defined()) dg_y = plus(dg_y, -product(primal(t_s), tangent(b)));
    const auto [dt_r, dt_s] = path_adjoint_op().call(primal(M), primal(a), primal(b), or_zeros(dg_x, primal(t_r)),
                                                     or_zeros(dg_y, primal(t_r)), sizes);
    t_r._set_fw_grad(dt_r, 0, false);
    t_s._set_fw_grad(dt_s, 0, false);
  }
  if (node) node->save(M, a, b, t_r, t_s, shape_of(g_x), shape_of(g_y), sizes);
  return {t_r, t_s};
}

LCP_LIBRARY_IMPL(Autograd, library) {
  library.impl("_path_point", TORCH_FN(path_point_autograd));
  library.impl("_path_tangent", TORCH_FN(path_tangent_autograd));
  library.impl("_path_adjoint", TORCH_FN(path_adjoint_autograd));
}

}  // namespace
}  // namespace lcp::ops
