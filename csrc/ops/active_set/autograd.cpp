// Reverse and forward mode of the derivative for a fixed active set, and so derivatives of any order.
#include <ATen/ExpandUtils.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/masked_fill.h>

#include "ops/active_set/derivative.h"
#include "ops/derivative.h"
#include "ops/registration.h"

namespace lcp::ops {
namespace {

// Backward of (z, w) = solve(M, q), with x = z, and of (dz, dw) = J r, with x = dz. In both, the outputs change by J
// (dM x + dr). So t = J' g is the gradient of r (or q), and t x' the gradient of M.
variable_list tangent_backward(const variable_list& g, const Needs& needs, const Tensor& M, const Tensor& basis,
                               const Tensor& x, const Shape& r_shape, const bool& tied_active,
                               const std::optional<Tensor>& sizes) {
  if (!g[0].defined() && !g[1].defined()) return {Tensor(), Tensor()};
  const Tensor t = adjoint_op().call(M, basis, or_zeros(g[0], x), or_zeros(g[1], x), tied_active, sizes);
  return {needs[0] ? sum_outer(t, x, M.sym_sizes()) : Tensor(), needs[1] ? sum_to_shape(t, r_shape) : Tensor()};
}

// Backward of t = J' g: p' dt = t' (dM (J p)_z) + (J p)' dg.
variable_list adjoint_backward(const variable_list& p, const Needs& needs, const Tensor& M, const Tensor& basis,
                               const Tensor& t, const Shape& g_z_shape, const Shape& g_w_shape, const bool& tied_active,
                               const std::optional<Tensor>& sizes) {
  if (!p[0].defined()) return {Tensor(), Tensor(), Tensor()};
  const auto [dz, dw] = tangent_op().call(M, basis, p[0], tied_active, sizes);
  return {needs[0] ? sum_outer(t, dz, M.sym_sizes()) : Tensor(), needs[1] ? sum_to_shape(dz, g_z_shape) : Tensor(),
          needs[2] ? sum_to_shape(dw, g_w_shape) : Tensor()};
}

variable_list sum_outer_backward(const variable_list& g, const Needs& needs, const Tensor& t, const Tensor& x) {
  if (!g[0].defined()) return {Tensor(), Tensor()};
  // All terms of a sum have the gradient of the sum, which is expanded to the whole batch first.
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

}  // namespace

void set_derivative(const char* name, const Tensor& M, const Tensor& q, Tensor& z, Tensor& w, const Tensor& basis,
                    bool tied_active, const std::optional<Tensor>& sizes) {
  const auto node = make_node<tangent_backward>(name, M, q);
  set_history(node, {z, w});
  if (has_tangent(M, q)) {
    const Tensor dM = tangent(M);
    const Tensor r = plus(dM.defined() ? times_tangent(dM, primal(z)) : Tensor(), tangent(q));
    const auto [dz, dw] = tangent_op().call(primal(M), basis, r, tied_active, sizes);
    z._set_fw_grad(dz, 0, false);
    w._set_fw_grad(dw, 0, false);
  }
  if (node) node->save(M, basis, z, shape_of(q), tied_active, sizes);
}

namespace {

Tensors<2> piece_autograd(c10::DispatchKeySet keys, const Tensor& M, const Tensor& q, const Tensor& z, const Tensor& w,
                          const Tensor& basis, bool tied_active, const std::optional<Tensor>& sizes) {
  auto [z_piece, w_piece] = below_autograd(piece_op(), keys, M, q, z, w, basis, tied_active, sizes);
  set_derivative("LcpPieceBackward", M, q, z_piece, w_piece, basis, tied_active, sizes);
  return {z_piece, w_piece};
}

Tensors<2> tangent_autograd(c10::DispatchKeySet keys, const Tensor& M, const Tensor& basis, const Tensor& r,
                            bool tied_active, const std::optional<Tensor>& sizes) {
  auto [dz, dw] = below_autograd(tangent_op(), keys, M, basis, r, tied_active, sizes);
  set_derivative("LcpTangentBackward", M, r, dz, dw, basis, tied_active, sizes);
  return {dz, dw};
}

Tensor adjoint_autograd(c10::DispatchKeySet keys, const Tensor& M, const Tensor& basis, const Tensor& g_z,
                        const Tensor& g_w, bool tied_active, const std::optional<Tensor>& sizes) {
  const auto node = make_node<adjoint_backward>("LcpAdjointBackward", M, g_z, g_w);
  Tensor t = below_autograd(adjoint_op(), keys, M, basis, g_z, g_w, tied_active, sizes);
  if (node) autograd::set_history(t, node);
  if (has_tangent(M, g_z, g_w)) {
    const Tensor dM = tangent(M);
    const Tensor dg_z = plus(dM.defined() ? times(dM.mT(), primal(t)) : Tensor(), tangent(g_z));
    t._set_fw_grad(adjoint_op().call(primal(M), basis, or_zeros(dg_z, primal(t)), or_zeros(tangent(g_w), primal(t)),
                                     tied_active, sizes),
                   0, false);
  }
  if (node) node->save(M, basis, t, shape_of(g_z), shape_of(g_w), tied_active, sizes);
  return t;
}

Tensor sum_outer_autograd(c10::DispatchKeySet keys, const Tensor& t, const Tensor& x, c10::SymIntArrayRef size) {
  const auto node = make_node<sum_outer_backward>("LcpSumOuterBackward", t, x);
  Tensor result = below_autograd(sum_outer_op(), keys, t, x, size);
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

LCP_LIBRARY_IMPL(Autograd, library) {
  library.impl("_piece", TORCH_FN(piece_autograd));
  library.impl("_tangent", TORCH_FN(tangent_autograd));
  library.impl("_adjoint", TORCH_FN(adjoint_autograd));
  library.impl("_sum_outer", TORCH_FN(sum_outer_autograd));
}

}  // namespace
}  // namespace lcp::ops
