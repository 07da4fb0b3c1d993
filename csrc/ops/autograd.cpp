// Reverse and forward mode for the operators, written as PyTorch's own derivatives are: a Node, not an
// autograd::Function, so that forward mode, functorch and double differentiation compose.
#include <ATen/ExpandUtils.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/masked_fill.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <torch/csrc/autograd/functions/utils.h>
#include <torch/library.h>

#include <limits>
#include <vector>

#include "ops/derivative.h"
#include "ops/node.h"
#include "ops/schema.h"

namespace lcp::ops {
namespace {

// t x elementwise; a NaN in x counts as 0, as in sum_outer.
Tensor product(const Tensor& t, const Tensor& x) { return t * x.masked_fill(x.isnan(), 0); }

// Backward of (z, w) = solve(M, q), with x = z, and of (dz, dw) = J r, with x = dz: in both the outputs change by
// J (dM x + dr), so that t = J' g is the gradient of r (or q), and t x' that of M.
variable_list tangent_backward(const variable_list& g, const Needs& needs, const Tensor& M, const Tensor& basis,
                               const Tensor& x, const Shape& r_shape, const bool& tied_active) {
  if (!g[0].defined() && !g[1].defined()) return {Tensor(), Tensor()};
  const Tensor t = adjoint_op().call(M, basis, or_zeros(g[0], x), or_zeros(g[1], x), tied_active);
  return {needs[0] ? sum_outer(t, x, M.sym_sizes()) : Tensor(), needs[1] ? sum_to_shape(t, r_shape) : Tensor()};
}

// Backward of t = J' g: p' dt = t' (dM (J p)_z) + (J p)' dg.
variable_list adjoint_backward(const variable_list& p, const Needs& needs, const Tensor& M, const Tensor& basis,
                               const Tensor& t, const Shape& g_z_shape, const Shape& g_w_shape,
                               const bool& tied_active) {
  if (!p[0].defined()) return {Tensor(), Tensor(), Tensor()};
  const auto [dz, dw] = tangent_op().call(M, basis, p[0], tied_active);
  return {needs[0] ? sum_outer(t, dz, M.sym_sizes()) : Tensor(), needs[1] ? sum_to_shape(dz, g_z_shape) : Tensor(),
          needs[2] ? sum_to_shape(dw, g_w_shape) : Tensor()};
}

// Of a point of the central path with `num_equations` equations, the a and b of csrc/solver/path_derivative.h.
Two path_coefficients(const Tensor& z, const Tensor& w, std::int64_t num_equations) {
  if (num_equations == 0) return {w, z};
  const auto behind = [num_equations](const Tensor& first, const Tensor& x) {
    return at::cat({first, x.narrow_symint(-1, num_equations, x.sym_size(-1) - num_equations)}, -1);
  };
  const Tensor equations = z.narrow_symint(-1, 0, num_equations);
  return {behind(at::zeros_like(equations), w), behind(at::ones_like(equations), z)};
}

// Backward of (z, w) with z_i w_i = kappa: d(z, w) = K (dM z + dq, 0).
variable_list path_point_backward(const variable_list& g, const Needs& needs, const Tensor& M, const Tensor& z,
                                  const Tensor& w, const Shape& q_shape, const std::int64_t& num_equations) {
  if (!g[0].defined() && !g[1].defined()) return {Tensor(), Tensor()};
  const auto [a, b] = path_coefficients(z, w, num_equations);
  const Tensor t = std::get<0>(path_adjoint_op().call(M, a, b, or_zeros(g[0], z), or_zeros(g[1], w)));
  return {needs[0] ? sum_outer(t, z, M.sym_sizes()) : Tensor(), needs[1] ? sum_to_shape(t, q_shape) : Tensor()};
}

// Backward of (x, y) = K (r, s), and of (t_r, t_s) = K' g: both are linear in t = K' p and (x, y) = K p of what is
// known and what comes in, p' d = t_r' (dM x + dr) + t_s' (ds - da x - db y).
variable_list path_gradients(const Needs& needs, const Tensor& M, const Tensor& t_r, const Tensor& t_s, const Tensor& x,
                             const Tensor& y, const Shape& a_shape, const Shape& b_shape) {
  return {needs[0] ? sum_outer(t_r, x, M.sym_sizes()) : Tensor(),
          needs[1] ? sum_to_shape(-product(t_s, x), a_shape) : Tensor(),
          needs[2] ? sum_to_shape(-product(t_s, y), b_shape) : Tensor()};
}

variable_list path_tangent_backward(const variable_list& p, const Needs& needs, const Tensor& M, const Tensor& a,
                                    const Tensor& b, const Tensor& x, const Tensor& y, const Shape& r_shape,
                                    const Shape& s_shape) {
  if (!p[0].defined() && !p[1].defined()) return variable_list(5);
  const auto [t_r, t_s] = path_adjoint_op().call(M, a, b, or_zeros(p[0], x), or_zeros(p[1], y));
  variable_list gradients = path_gradients(needs, M, t_r, t_s, x, y, shape_of(a), shape_of(b));
  gradients.push_back(needs[3] ? sum_to_shape(t_r, r_shape) : Tensor());
  gradients.push_back(needs[4] ? sum_to_shape(t_s, s_shape) : Tensor());
  return gradients;
}

variable_list path_adjoint_backward(const variable_list& p, const Needs& needs, const Tensor& M, const Tensor& a,
                                    const Tensor& b, const Tensor& t_r, const Tensor& t_s, const Shape& g_x_shape,
                                    const Shape& g_y_shape) {
  if (!p[0].defined() && !p[1].defined()) return variable_list(5);
  const auto [x, y] = path_tangent_op().call(M, a, b, or_zeros(p[0], t_r), or_zeros(p[1], t_s));
  variable_list gradients = path_gradients(needs, M, t_r, t_s, x, y, shape_of(a), shape_of(b));
  gradients.push_back(needs[3] ? sum_to_shape(x, g_x_shape) : Tensor());
  gradients.push_back(needs[4] ? sum_to_shape(y, g_y_shape) : Tensor());
  return gradients;
}

// Backward of a value whose derivative is another tensor's.
variable_list carried_backward(const variable_list& g, const Needs&) { return {g[0]}; }

variable_list sum_outer_backward(const variable_list& g, const Needs& needs, const Tensor& t, const Tensor& x) {
  if (!g[0].defined()) return {Tensor(), Tensor()};
  // The sum's gradient is the same for each of its terms, so it is expanded to the whole batch first.
  const auto batch =
      at::infer_size_symdimvector(t.sym_sizes().slice(0, t.dim() - 1), x.sym_sizes().slice(0, x.dim() - 1));
  const auto gradient = [&](const Tensor& product, const Tensor& argument) {
    c10::SymDimVector shape = batch;
    shape.push_back(argument.sym_size(-1));
    return sum_to_shape(product.expand_symint(shape), shape_of(argument));
  };
  return {needs[0] ? gradient(times(g[0], x.masked_fill(x.isnan(), 0)), t) : Tensor(),
          needs[1] ? gradient(times(g[0].mT(), t), x) : Tensor()};
}

// Gives z and w, the solution for M and q with this complementary basis, the derivative J.
void attach(const char* name, const Tensor& M, const Tensor& q, Tensor& z, Tensor& w, const Tensor& basis,
            bool tied_active) {
  const auto node = make_node<tangent_backward>(name, M, q);
  if (node) {
    autograd::set_history(z, node);
    autograd::set_history(w, node);
  }
  if (has_tangent(M, q)) {
    const Tensor dM = tangent(M);
    const Tensor r = plus(dM.defined() ? times_tangent(dM, primal(z)) : Tensor(), tangent(q));
    const auto [dz, dw] = tangent_op().call(primal(M), basis, r, tied_active);
    z._set_fw_grad(dz, 0, false);
    w._set_fw_grad(dw, 0, false);
  }
  if (node) node->save(M, basis, z, shape_of(q), tied_active);
}

// Gives `value` the derivative of `carrier`.
void carry(Tensor& value, const Tensor& carrier) {
  const auto node = make_node<carried_backward>("LcpSmoothBackward", carrier);
  if (node) autograd::set_history(value, node);
  if (has_tangent(carrier)) value._set_fw_grad(tangent(carrier), 0, false);
}

// Gives the outputs of lcp::_solve_blocks their derivative.
void differentiate(const char* name, const Tensor& M, const Tensor& q, std::int64_t num_equations,
                   std::string_view ties, double kappa, Tensor& z, Tensor& w, const Tensor& basis) {
  if (kappa > 0) {
    const auto [z_kappa, w_kappa] = path_point_op().call(M, q, z, num_equations, kappa);
    carry(z, z_kappa);
    carry(w, w_kappa);
  } else if (ties == "midpoint") {
    const auto [z_inactive, w_inactive] = piece_op().call(M, q, z, w, basis, false);
    const auto [z_active, w_active] = piece_op().call(M, q, z, w, basis, true);
    const auto middle = [](const Tensor& a, const Tensor& b) { return a + 0.5 * (b - a); };  // a where a = b, exactly
    z = middle(z_inactive, z_active);
    w = middle(w_inactive, w_active);
  } else {
    attach(name, M, q, z, w, basis, ties == "active");
  }
}

Three solve_autograd(c10::DispatchKeySet keys, const Tensor& M, const Tensor& q, const std::optional<Tensor>& guess,
                     std::string_view method, std::string_view ties, double kappa, std::optional<double> tolerance,
                     std::optional<std::int64_t> max_pivots) {
  check_layout("M", M);
  check_layout("q", q);
  const c10::DispatchKeySet below = keys & c10::after_autograd_keyset;
  if (!autograd::compute_requires_grad(M, q) && !has_tangent(M, q)) {
    at::AutoDispatchBelowADInplaceOrView guard;
    return solve_op().redispatch(below, M, q, guess, method, ties, kappa, tolerance, max_pivots);
  }
  auto [z, w, status, basis] = [&] {
    at::AutoDispatchBelowADInplaceOrView guard;
    return solve_blocks_op().redispatch(below, M, q, 0, guess, method, ties, kappa, tolerance, max_pivots);
  }();
  differentiate("LcpSolveBackward", M, q, 0, ties, kappa, z, w, basis);
  return {z, w, status};
}

Four solve_blocks_autograd(c10::DispatchKeySet keys, const Tensor& H, const Tensor& h, std::int64_t num_equations,
                           const std::optional<Tensor>& guess, std::string_view method, std::string_view ties,
                           double kappa, std::optional<double> tolerance, std::optional<std::int64_t> max_pivots) {
  check_layout("H", H);
  check_layout("h", h);
  auto [v, y, status, basis] = [&] {
    at::AutoDispatchBelowADInplaceOrView guard;
    return solve_blocks_op().redispatch(keys & c10::after_autograd_keyset, H, h, num_equations, guess, method, ties,
                                        kappa, tolerance, max_pivots);
  }();
  if (autograd::compute_requires_grad(H, h) || has_tangent(H, h)) {
    differentiate("LcpSolveMixedBackward", H, h, num_equations, ties, kappa, v, y, basis);
  }
  return {v, y, status, basis};
}

Two piece_autograd(c10::DispatchKeySet keys, const Tensor& M, const Tensor& q, const Tensor& z, const Tensor& w,
                   const Tensor& basis, bool tied_active) {
  auto [z_piece, w_piece] = [&] {
    at::AutoDispatchBelowADInplaceOrView guard;
    return piece_op().redispatch(keys & c10::after_autograd_keyset, M, q, z, w, basis, tied_active);
  }();
  attach("LcpPieceBackward", M, q, z_piece, w_piece, basis, tied_active);
  return {z_piece, w_piece};
}

Two tangent_autograd(c10::DispatchKeySet keys, const Tensor& M, const Tensor& basis, const Tensor& r,
                     bool tied_active) {
  const auto node = make_node<tangent_backward>("LcpTangentBackward", M, r);
  auto [dz, dw] = [&] {
    at::AutoDispatchBelowADInplaceOrView guard;
    return tangent_op().redispatch(keys & c10::after_autograd_keyset, M, basis, r, tied_active);
  }();
  if (node) {
    autograd::set_history(dz, node);
    autograd::set_history(dw, node);
  }
  if (has_tangent(M, r)) {
    const Tensor dM = tangent(M);
    const Tensor change = plus(dM.defined() ? times_tangent(dM, primal(dz)) : Tensor(), tangent(r));
    const auto [ddz, ddw] = tangent_op().call(primal(M), basis, change, tied_active);
    dz._set_fw_grad(ddz, 0, false);
    dw._set_fw_grad(ddw, 0, false);
  }
  if (node) node->save(M, basis, dz, shape_of(r), tied_active);
  return {dz, dw};
}

Tensor adjoint_autograd(c10::DispatchKeySet keys, const Tensor& M, const Tensor& basis, const Tensor& g_z,
                        const Tensor& g_w, bool tied_active) {
  const auto node = make_node<adjoint_backward>("LcpAdjointBackward", M, g_z, g_w);
  Tensor t = [&] {
    at::AutoDispatchBelowADInplaceOrView guard;
    return adjoint_op().redispatch(keys & c10::after_autograd_keyset, M, basis, g_z, g_w, tied_active);
  }();
  if (node) autograd::set_history(t, node);
  if (has_tangent(M, g_z, g_w)) {
    const Tensor dM = tangent(M);
    const Tensor dg_z = plus(dM.defined() ? times(dM.mT(), primal(t)) : Tensor(), tangent(g_z));
    t._set_fw_grad(
        adjoint_op().call(primal(M), basis, or_zeros(dg_z, primal(t)), or_zeros(tangent(g_w), primal(t)), tied_active),
        0, false);
  }
  if (node) node->save(M, basis, t, shape_of(g_z), shape_of(g_w), tied_active);
  return t;
}

Two path_point_autograd(c10::DispatchKeySet keys, const Tensor& M, const Tensor& q, const Tensor& z_0,
                        std::int64_t num_equations, double kappa) {
  const auto node = make_node<path_point_backward>("LcpPathPointBackward", M, q);
  auto [z, w] = [&] {
    at::AutoDispatchBelowADInplaceOrView guard;
    return path_point_op().redispatch(keys & c10::after_autograd_keyset, M, q, z_0, num_equations, kappa);
  }();
  if (node) {
    autograd::set_history(z, node);
    autograd::set_history(w, node);
  }
  if (has_tangent(M, q)) {
    const Tensor dM = tangent(M);
    const Tensor r = plus(dM.defined() ? times_tangent(dM, primal(z)) : Tensor(), tangent(q));
    const auto [a, b] = path_coefficients(primal(z), primal(w), num_equations);
    const auto [dz, dw] = path_tangent_op().call(primal(M), a, b, r, at::zeros_like(r));
    z._set_fw_grad(dz, 0, false);
    w._set_fw_grad(dw, 0, false);
  }
  if (node) node->save(M, z, w, shape_of(q), num_equations);
  return {z, w};
}

// ds - da x - db y.
Tensor complementarity_change(const Tensor& s, const Tensor& a, const Tensor& b, const Tensor& x, const Tensor& y) {
  Tensor change = tangent(s);
  if (tangent(a).defined()) change = plus(change, -product(tangent(a), x));
  if (tangent(b).defined()) change = plus(change, -product(tangent(b), y));
  return change;
}

Two path_tangent_autograd(c10::DispatchKeySet keys, const Tensor& M, const Tensor& a, const Tensor& b, const Tensor& r,
                          const Tensor& s) {
  const auto node = make_node<path_tangent_backward>("LcpPathTangentBackward", M, a, b, r, s);
  auto [x, y] = [&] {
    at::AutoDispatchBelowADInplaceOrView guard;
    return path_tangent_op().redispatch(keys & c10::after_autograd_keyset, M, a, b, r, s);
  }();
  if (node) {
    autograd::set_history(x, node);
    autograd::set_history(y, node);
  }
  if (has_tangent(M, a, b, r, s)) {
    const Tensor dM = tangent(M);
    const Tensor dr = plus(dM.defined() ? times_tangent(dM, primal(x)) : Tensor(), tangent(r));
    const Tensor ds = complementarity_change(s, a, b, primal(x), primal(y));
    const auto [dx, dy] =
        path_tangent_op().call(primal(M), primal(a), primal(b), or_zeros(dr, primal(x)), or_zeros(ds, primal(x)));
    x._set_fw_grad(dx, 0, false);
    y._set_fw_grad(dy, 0, false);
  }
  if (node) node->save(M, a, b, x, y, shape_of(r), shape_of(s));
  return {x, y};
}

Two path_adjoint_autograd(c10::DispatchKeySet keys, const Tensor& M, const Tensor& a, const Tensor& b,
                          const Tensor& g_x, const Tensor& g_y) {
  const auto node = make_node<path_adjoint_backward>("LcpPathAdjointBackward", M, a, b, g_x, g_y);
  auto [t_r, t_s] = [&] {
    at::AutoDispatchBelowADInplaceOrView guard;
    return path_adjoint_op().redispatch(keys & c10::after_autograd_keyset, M, a, b, g_x, g_y);
  }();
  if (node) {
    autograd::set_history(t_r, node);
    autograd::set_history(t_s, node);
  }
  if (has_tangent(M, a, b, g_x, g_y)) {
    const Tensor dM = tangent(M);
    Tensor dg_x = plus(dM.defined() ? times(dM.mT(), primal(t_r)) : Tensor(), tangent(g_x));
    Tensor dg_y = tangent(g_y);
    if (tangent(a).defined()) dg_x = plus(dg_x, -product(primal(t_s), tangent(a)));
    if (tangent(b).defined()) dg_y = plus(dg_y, -product(primal(t_s), tangent(b)));
    const auto [dt_r, dt_s] = path_adjoint_op().call(primal(M), primal(a), primal(b), or_zeros(dg_x, primal(t_r)),
                                                     or_zeros(dg_y, primal(t_r)));
    t_r._set_fw_grad(dt_r, 0, false);
    t_s._set_fw_grad(dt_s, 0, false);
  }
  if (node) node->save(M, a, b, t_r, t_s, shape_of(g_x), shape_of(g_y));
  return {t_r, t_s};
}

Tensor sum_outer_autograd(c10::DispatchKeySet keys, const Tensor& t, const Tensor& x, c10::SymIntArrayRef size) {
  const auto node = make_node<sum_outer_backward>("LcpSumOuterBackward", t, x);
  Tensor result = [&] {
    at::AutoDispatchBelowADInplaceOrView guard;
    return sum_outer_op().redispatch(keys & c10::after_autograd_keyset, t, x, size);
  }();
  if (node) {
    autograd::set_history(result, node);
    node->save(t, x);
  }
  if (has_tangent(t, x)) {
    const Tensor dt = tangent(t);
    const Tensor dx = tangent(x);
    result._set_fw_grad(plus(dt.defined() ? sum_outer(dt, primal(x), size) : Tensor(),
                             dx.defined() ? sum_outer(primal(t), dx, size) : Tensor()),
                        0, false);
  }
  return result;
}

// What certify, directional_derivative and gradient_radius return has no derivative.
void without_derivative(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  const auto& arguments = op.schema().arguments();
  for (std::size_t k = 0; k < arguments.size(); ++k) {
    const c10::IValue& argument = torch::jit::peek(*stack, k, arguments.size());
    if (argument.isTensor()) check_layout(arguments[k].name().c_str(), argument.toTensor());
  }
  at::AutoDispatchBelowADInplaceOrView guard;
  op.redispatchBoxed(keys & c10::after_autograd_keyset, stack);
}

TORCH_LIBRARY_IMPL(lcp, Autograd, library) {
  library.impl("solve", TORCH_FN(solve_autograd));
  library.impl("_solve_blocks", TORCH_FN(solve_blocks_autograd));
  library.impl("_piece", TORCH_FN(piece_autograd));
  library.impl("_tangent", TORCH_FN(tangent_autograd));
  library.impl("_adjoint", TORCH_FN(adjoint_autograd));
  library.impl("_path_point", TORCH_FN(path_point_autograd));
  library.impl("_path_tangent", TORCH_FN(path_tangent_autograd));
  library.impl("_path_adjoint", TORCH_FN(path_adjoint_autograd));
  library.impl("_sum_outer", TORCH_FN(sum_outer_autograd));
  for (const char* name : {"certify", "directional_derivative", "gradient_radius"}) {
    library.impl(name, torch::CppFunction::makeFromBoxedFunction<&without_derivative>());
  }
}

}  // namespace
}  // namespace lcp::ops
