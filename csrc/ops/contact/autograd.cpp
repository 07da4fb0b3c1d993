// Derivatives of compliant contact, of any order.
//
// The first derivative is the kernel lcp::_contact_adjoint. Where the derivative of this kernel is asked for, formulas
// of tensors replace the kernel, with lcp::_contact_inverse for H^-1. Forward mode uses formulas, too.
// csrc/contact/derivative.h has the mathematics.
#include <ATen/TensorOperators.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros_like.h>

#include <tuple>

#include "contact/tensor_cone.h"
#include "ops/contact/operators.h"
#include "ops/contact/tensors.h"
#include "ops/derivative.h"
#include "ops/node.h"
#include "ops/registration.h"

namespace lcp::ops {
namespace {

// Problems and their solutions. Elements without a solution, which `unsolved` marks, get numbers that lead to no NaN.
struct Point {
  Tensor A, J, v, y;             // y: [..., c, 3]
  Tensor tangent, normal_R, mu;  // [..., c], R of the tangents and of the normal
  Tensor unsolved;               // [..., 1]
  Missing missing;

  Point(const Tensor& A_given, const Tensor& J_given, const Tensor& R_given, const Tensor& mu_given,
        const Tensor& v_given, const Tensor& y_given, const std::optional<Tensor>& sizes)
      : unsolved(v_given.isnan().any(-1, true) | y_given.isnan().any(-1, true)), missing(unsolved, sizes, mu_given) {
    A = symmetric(at::where(unsolved.unsqueeze(-1), 0, A_given));
    J = at::where(missing.rows.unsqueeze(-1), 0, J_given);
    v = at::where(unsolved, 0, v_given);
    y = by_contact(at::where(unsolved, 0, y_given));
    const Tensor R = by_contact(at::where(missing.rows, 1, R_given));
    tangent = (R.select(-1, 0) + R.select(-1, 1)) / 2;
    normal_R = R.select(-1, 2);
    mu = at::where(missing.contacts, 0, mu_given);
  }

  Tensor weights() const { return at::stack({tangent, tangent, normal_R}, -1); }  // [..., c, 3]
  Tensor to_contacts(const Tensor& x) const { return by_contact(times(J, x)); }
  Tensor to_bodies(const Tensor& x) const { return times(J.mT(), by_row(x)); }
};

// H^-1 g.
Tensor inverse(const Point& at, const Tensor& K, const Tensor& g) {
  return contact_inverse_op().call(at.A, at.J, by_contact(by_row(by_row(K))), g);
}

// lcp::_contact_adjoint in formulas.
Tensors<6> adjoint_formula(const Tensor& A, const Tensor& J, const Tensor& R, const Tensor& mu, const Tensor& v,
                           const Tensor& y, const Tensor& g_v, const Tensor& g_y, const Tensor& g_gamma,
                           const std::optional<Tensor>& sizes) {
  const Point at(A, J, R, mu, v, y, sizes);
  const contact::TensorCone cone(at.y, at.tangent, at.normal_R, at.mu);
  const Tensor K = cone.compliance();
  const Tensor undefined = at.unsolved & (any_nonzero(g_v) | any_nonzero(g_y) | any_nonzero(g_gamma));
  const auto nan_where_undefined = [&](const Tensor& x) { return x.masked_fill(undefined, kNaN); };
  const Tensor g = by_contact(g_gamma);
  const Tensor c_0 = by_contact(g_y) / at.weights() + apply(K, g);  // R^-1 g_y + K g_gamma
  const Tensor l = inverse(at, K, at::where(at.unsolved, 0, g_v - at.to_bodies(c_0)));
  const Tensor t = at.to_contacts(l);
  const Tensor c = c_0 + apply(K, t);
  const auto [of_tangent, of_normal, of_mu] = cone.change_adjoint(t + g);
  const Tensor half = (of_tangent - scalar_product(tangents(at.y), tangents(c))) / 2;
  const Tensor of_R = at::stack({half, half, of_normal - normals(at.y) * normals(c)}, -1);
  return {nan_where_undefined(l),         nan_where_undefined(times(at.A, l)),
          nan_where_undefined(by_row(c)), nan_where_undefined(by_row(of_R)),
          nan_where_undefined(of_mu),     nan_where_undefined(by_row(cone.gamma))};
}

variable_list point_backward(const variable_list& g, const Needs& needs, const Tensor& A, const Tensor& v_free,
                             const Tensor& J, const Tensor& R, const Tensor& mu, const Tensor& v, const Tensor& y,
                             const Shape& v_hat_shape, const std::optional<Tensor>& sizes) {
  if (!g[0].defined() && !g[1].defined() && !g[2].defined()) return variable_list(6);
  const auto [l, of_v_free, of_v_hat, of_R, of_mu, gamma] =
      contact_adjoint_op().call(A, J, R, mu, v, y, or_zeros(g[0], v), or_zeros(g[1], y), or_zeros(g[2], y), sizes);
  variable_list result(6);
  if (needs[0]) result[0] = symmetric(sum_outer(-l, v - v_free, A.sym_sizes()));
  if (needs[1]) result[1] = sum_to_shape(of_v_free, shape_of(v_free));
  if (needs[2]) result[2] = sum_outer_turned(l, gamma, J) - sum_outer(of_v_hat, v, J.sym_sizes());
  if (needs[3]) result[3] = sum_to_shape(of_v_hat, v_hat_shape);
  if (needs[4]) result[4] = sum_to_shape(of_R, shape_of(R));
  if (needs[5]) result[5] = sum_to_shape(of_mu, shape_of(mu));
  return result;
}

// dv, dy and dgamma.
Tensors<3> point_tangent(const Tensor& A, const Tensor& v_free, const Tensor& J, const Tensor& v_hat, const Tensor& R,
                         const Tensor& mu, const Tensor& v_given, const Tensor& y_given,
                         const std::optional<Tensor>& sizes) {
  const Point at(primal(A), primal(J), primal(R), primal(mu), v_given, y_given, sizes);
  const contact::TensorCone cone(at.y, at.tangent, at.normal_R, at.mu);
  const Tensor K = cone.compliance();
  const auto given = [](const Tensor& x) { return tangent(x).defined() ? tangent(x) : at::zeros_like(primal(x)); };
  const Tensor dA = given(A), dv_free = given(v_free);
  Tensor dJ = given(J), dv_hat = given(v_hat), dR = given(R), dmu = given(mu);
  const Tensor undefined = at.unsolved & (any_nonzero(dA).any(-2) | any_nonzero(dv_free) | any_nonzero(dJ).any(-2) |
                                          any_nonzero(dv_hat) | any_nonzero(dR) | any_nonzero(dmu));
  dJ = at::where(at.missing.rows.unsqueeze(-1), 0, dJ);
  dv_hat = at::where(at.missing.rows, 0, dv_hat);
  dR = at::where(at.missing.rows, 0, dR);
  dmu = at::where(at.missing.contacts, 0, dmu);
  const Tensor dR_c = by_contact(dR);
  const Tensor d_tangent = (dR_c.select(-1, 0) + dR_c.select(-1, 1)) / 2, d_normal = dR_c.select(-1, 2);
  const Tensor d_weights = at::stack({d_tangent, d_tangent, d_normal}, -1);
  // R dy at constant v, and the change of gamma at constant y.
  const Tensor fixed = by_contact(dv_hat - times(dJ, at.v)) - at.y * d_weights;
  const Tensor d_law = cone.change(d_tangent, d_normal, dmu);
  const Tensor off = at.v - at::where(at.unsolved, 0, primal(v_free));
  const Tensor dF = times(symmetric(dA), off) - times(at.A, dv_free) - times(dJ.mT(), by_row(cone.gamma)) -
                    at.to_bodies(apply(K, fixed) + d_law);
  const Tensor dv = inverse(at, K, at::where(at.unsolved, 0, -dF));
  const Tensor R_dy = fixed - at.to_contacts(dv);
  const auto nan_where_undefined = [&](const Tensor& x) { return x.masked_fill(undefined, kNaN); };
  return {nan_where_undefined(dv), nan_where_undefined(by_row(R_dy / at.weights())),
          nan_where_undefined(by_row(apply(K, R_dy) + d_law))};
}

Tensors<5> contact_point_autograd(c10::DispatchKeySet keys, const Tensor& A, const Tensor& v_free, const Tensor& J,
                                  const Tensor& v_hat, const Tensor& R, const Tensor& mu,
                                  const std::optional<Tensor>& sizes, const std::optional<Tensor>& guess,
                                  std::optional<double> tolerance, std::optional<std::int64_t> max_iterations) {
  const auto node = make_node<point_backward>("LcpContactBackward", A, v_free, J, v_hat, R, mu);
  auto [v, y, gamma, status, iterations] =
      below_autograd(contact_point_op(), keys, A, v_free, J, v_hat, R, mu, sizes, guess, tolerance, max_iterations);
  set_history(node, {v, y, gamma});
  if (has_tangent(A, v_free, J, v_hat, R, mu)) {
    const auto [dv, dy, dgamma] = point_tangent(A, v_free, J, v_hat, R, mu, primal(v), primal(y), sizes);
    v._set_fw_grad(dv, 0, false);
    y._set_fw_grad(dy, 0, false);
    gamma._set_fw_grad(dgamma, 0, false);
  }
  if (node) node->save(A, v_free, J, R, mu, v, y, shape_of(v_hat), sizes);
  return {v, y, gamma, status, iterations};
}

Tensors<6> contact_adjoint_autograd(c10::DispatchKeySet keys, const Tensor& A, const Tensor& J, const Tensor& R,
                                    const Tensor& mu, const Tensor& v, const Tensor& y, const Tensor& g_v,
                                    const Tensor& g_y, const Tensor& g_gamma, const std::optional<Tensor>& sizes) {
  if (needs_derivative(A, J, R, mu, v, y, g_v, g_y, g_gamma)) {
    return adjoint_formula(A, J, R, mu, v, y, g_v, g_y, g_gamma, sizes);
  }
  return below_autograd(contact_adjoint_op(), keys, A, J, R, mu, v, y, g_v, g_y, g_gamma, sizes);
}

// K of lcp::_contact_inverse, [..., 3 c, 3], as blocks [..., c, 3, 3].
Tensor blocks_of(const Tensor& K) {
  Shape shape = shape_of(K);
  shape.insert(shape.end() - 1, 3);
  shape[shape.size() - 3] = shape[shape.size() - 3] / 3;
  return K.reshape_symint(shape);
}

// p' dx = p' H^-1 (dg - dH x) with m = H^-1 p: m' dg - m' (dA + dJ' K J + J' K dJ + J' dK J) x.
variable_list inverse_backward(const variable_list& p, const Needs& needs, const Tensor& A, const Tensor& J,
                               const Tensor& K, const Tensor& x, const Shape& g_shape) {
  if (!p[0].defined()) return variable_list(4);
  const Tensor m = contact_inverse_op().call(A, J, K, p[0]);
  const Tensor Jx = by_contact(times(J, x)), Jm = by_contact(times(J, m));
  variable_list result(4);
  if (needs[0]) result[0] = symmetric(sum_outer(-m, x, A.sym_sizes()));
  if (needs[1]) {
    const Tensor blocks = blocks_of(K);
    result[1] = -sum_outer(by_row(apply(blocks, Jx)), m, J.sym_sizes()) -
                sum_outer(by_row(apply(blocks, Jm)), x, J.sym_sizes());
  }
  if (needs[2]) {
    const Tensor blocks = -Jm.unsqueeze(-1) * Jx.unsqueeze(-2);
    result[2] = by_contact(sum_to_shape(by_row(by_row(blocks)), shape_of(by_row(K))));
  }
  if (needs[3]) result[3] = sum_to_shape(m, g_shape);
  return result;
}

Tensor contact_inverse_autograd(c10::DispatchKeySet keys, const Tensor& A, const Tensor& J, const Tensor& K,
                                const Tensor& g) {
  const auto node = make_node<inverse_backward>("LcpContactInverseBackward", A, J, K, g);
  Tensor x = below_autograd(contact_inverse_op(), keys, A, J, K, g);
  if (node) autograd::set_history(x, node);
  if (has_tangent(A, J, K, g)) {
    const Tensor p = primal(x), J_p = primal(J), blocks = blocks_of(primal(K));
    const auto K_times = [&](const Tensor& rows) { return by_row(apply(blocks, by_contact(rows))); };
    Tensor change = tangent(g);
    if (tangent(A).defined()) change = plus(change, -times(symmetric(tangent(A)), p));
    if (tangent(J).defined()) {
      const Tensor dJ = tangent(J);
      change = plus(change, -times(dJ.mT(), K_times(times(J_p, p))) - times(J_p.mT(), K_times(times(dJ, p))));
    }
    if (tangent(K).defined()) {
      change = plus(change, -times(J_p.mT(), by_row(apply(blocks_of(tangent(K)), by_contact(times(J_p, p))))));
    }
    x._set_fw_grad(contact_inverse_op().call(primal(A), J_p, primal(K), change), 0, false);
  }
  if (node) node->save(A, J, K, x, shape_of(g));
  return x;
}

LCP_LIBRARY_IMPL(Autograd, library) {
  library.impl("_contact_point", TORCH_FN(contact_point_autograd));
  library.impl("_contact_adjoint", TORCH_FN(contact_adjoint_autograd));
  library.impl("_contact_inverse", TORCH_FN(contact_inverse_autograd));
}

}  // namespace
}  // namespace lcp::ops
