// Derivatives of rollouts, of any order.
//
// The first in reverse mode is the kernel lcp::_simulate_lcs_adjoint. Where its own derivative is asked for, it is
// written as a loop over the steps in operators that are differentiable, as csrc/lcs/adjoint.h has the mathematics; so
// is forward mode.
#include <ATen/TensorOperators.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <string>
#include <vector>

#include "ops/derivative.h"
#include "ops/lcs/operators.h"
#include "ops/registration.h"

namespace lcp::ops {
namespace {

// The same for all ties: piece(tied_active), or the mean of both.
template <class Piece>
Tensor for_ties(std::string_view ties, const Piece& piece) {
  if (ties != "midpoint") return piece(ties == "active");
  const Tensor inactive = piece(false);
  return inactive + 0.5 * (piece(true) - inactive);
}

Tensor step_of(const Tensor& x, std::int64_t s) { return x.select(-2, s); }

// The state at the beginning of step s.
Tensor start_of(const Tensor& x, const Tensor& x_next, std::int64_t s) { return s == 0 ? x : step_of(x_next, s - 1); }

// l x', where a number of x that is not finite counts as 0.
Tensor finite_product(const Tensor& l, const Tensor& x) {
  return l.unsqueeze(-1) * at::where(x.isfinite(), x, 0).unsqueeze(-2);
}

// Which pairs of a step are directions of a contact that sticks, as csrc/lcs/cone.h has it; undefined without contacts.
Tensor sticking(c10::SymIntArrayRef cone, const Tensor& z, const Tensor& w) {
  if (std::all_of(cone.begin(), cone.end(), [](const c10::SymInt& j) { return j < 0; })) return {};
  std::vector<Tensor> of_pair;
  for (const c10::SymInt& j : cone) {
    if (j < 0) {
      of_pair.push_back(at::zeros_like(z.select(-1, 0), z.options().dtype(at::kBool)));
      continue;
    }
    Tensor held = w.select_symint(-1, j) > 0;
    for (std::size_t other = 0; other < cone.size(); ++other) {
      if (cone[other] == j) held = held | (z.select(-1, static_cast<std::int64_t>(other)) > 0);
    }
    of_pair.push_back(held & (z.select_symint(-1, j) == 0));
  }
  return at::stack(of_pair, -1);
}

// x, 0 where `held` is true.
Tensor moving(const Tensor& held, const Tensor& x) { return held.defined() ? x.masked_fill(held, 0) : x; }

// lcp::_simulate_lcs_adjoint in operators that are differentiable.
Tensors<11> adjoint_formula(const Tensor& A, const Tensor& B, const Tensor& D, const Tensor& G, const Tensor& E,
                            const Tensor& H, const Tensor& M, const Tensor& x, const Tensor& u, const Tensor& x_next,
                            const Tensor& z, const Tensor& w, const Tensor& basis, const Tensor& g_x_next,
                            const Tensor& g_z, const Tensor& g_w, c10::SymIntArrayRef cone, std::string_view ties,
                            std::int64_t wanted) {
  std::array<Tensor, 11> sums;
  const auto add = [&](int k, const Tensor& term) { sums[k] = plus(sums[k], term); };
  std::vector<Tensor> of_u;
  Tensor carried;
  for (std::int64_t s = u.size(-2) - 1; s >= 0; --s) {
    const Tensor start = start_of(x, x_next, s);
    const Tensor l = plus(carried, step_of(g_x_next, s));
    const Tensor of_z = step_of(g_z, s) + times(D.mT(), l);
    const Tensor held = sticking(cone, step_of(z, s), step_of(w, s));
    const Tensor of_w = step_of(g_w, s) + moving(held, times(G.mT(), l));
    const Tensor t = for_ties(ties, [&](bool tied_active) {
      return adjoint_op().call(M, step_of(basis, s), of_z, of_w, tied_active, std::nullopt);
    });
    add(0, finite_product(l, start));
    add(1, finite_product(l, step_of(u, s)));
    add(2, finite_product(l, step_of(z, s)));
    add(3, finite_product(l, moving(held, step_of(w, s))));
    add(4, l);
    add(5, finite_product(t, start));
    add(6, finite_product(t, step_of(u, s)));
    add(7, finite_product(t, step_of(z, s)));
    add(8, t);
    of_u.push_back(times(B.mT(), l) + times(H.mT(), t));
    carried = times(A.mT(), l) + times(E.mT(), t);
  }
  std::reverse(of_u.begin(), of_u.end());
  sums[9] = carried;
  if (!of_u.empty()) sums[10] = at::stack(of_u, -2);
  with_call(
      kSimulateLcsAdjoint,
      [&](const Call& call) {
        for (int k = 0; k < 11; ++k) {
          const c10::SymDimVector shape = call.shape(kSimulateLcsAdjoint.results()[k]);
          sums[k] = sums[k].defined() ? sums[k].expand_symint(shape) : at::zeros_symint(shape, A.options());
        }
      },
      A, B, D, G, E, H, M, x, u, x_next, z, w, basis, g_x_next, g_z, g_w, cone, ties, wanted);
  return as_tuple(std::move(sums));
}

// x, [..., core], summed to `shape`, which has as many core dimensions.
Tensor core_summed(const Tensor& x, const Shape& shape, std::size_t core_dims) {
  if (core_dims == 1 || x.sym_sizes() == c10::SymIntArrayRef(shape)) return sum_to_shape(x, shape);
  Shape given = shape_of(x);
  Shape flat = shape;
  for (Shape* const s : {&given, &flat}) {
    const c10::SymInt last = s->back();
    s->pop_back();
    s->back() = s->back() * last;
  }
  return sum_to_shape(x.reshape_symint(given), flat).reshape_symint(shape);
}

variable_list rollout_backward(const variable_list& g, const Needs& needs, const Tensor& A, const Tensor& B,
                               const Tensor& D, const Tensor& G, const Tensor& E, const Tensor& H, const Tensor& M,
                               const Tensor& x, const Tensor& u, const Tensor& x_next, const Tensor& z, const Tensor& w,
                               const Tensor& basis, const Shape& d_shape, const Shape& q_shape, const Shape& cone,
                               const std::string& ties) {
  variable_list result(11);
  if (!g[0].defined() && !g[1].defined() && !g[2].defined()) return result;
  const auto or_none = [](const Tensor& gradient, const Tensor& of) {
    if (gradient.defined()) return gradient;
    return at::zeros({1, 1}, of.options()).expand_symint({of.sym_size(-2), of.sym_size(-1)});
  };
  std::int64_t wanted = 0;
  for (std::size_t k = 0; k < result.size(); ++k) wanted |= std::int64_t{needs[k]} << k;
  const auto all = simulate_lcs_adjoint_op().call(A, B, D, G, E, H, M, x, u, x_next, z, w, basis, or_none(g[0], x_next),
                                                  or_none(g[1], z), or_none(g[2], w), cone, ties, wanted);
  const auto& [of_A, of_B, of_D, of_G, of_d, of_E, of_H, of_M, of_q, of_x, of_u] = all;
  if (needs[0]) result[0] = core_summed(of_A, shape_of(A), 2);
  if (needs[1]) result[1] = core_summed(of_B, shape_of(B), 2);
  if (needs[2]) result[2] = core_summed(of_D, shape_of(D), 2);
  if (needs[3]) result[3] = core_summed(of_G, shape_of(G), 2);
  if (needs[4]) result[4] = core_summed(of_d, d_shape, 1);
  if (needs[5]) result[5] = core_summed(of_E, shape_of(E), 2);
  if (needs[6]) result[6] = core_summed(of_H, shape_of(H), 2);
  if (needs[7]) result[7] = core_summed(of_M, shape_of(M), 2);
  if (needs[8]) result[8] = core_summed(of_q, q_shape, 1);
  if (needs[9]) result[9] = core_summed(of_x, shape_of(x), 1);
  if (needs[10]) result[10] = core_summed(of_u, shape_of(u), 2);
  return result;
}

// dx_next, dz and dw.
Tensors<3> rollout_tangent(const Tensor& A, const Tensor& B, const Tensor& D, const Tensor& G, const Tensor& d,
                           const Tensor& E, const Tensor& H, const Tensor& M, const Tensor& q, const Tensor& x,
                           const Tensor& u, const Tensor& x_next, const Tensor& z, const Tensor& w, const Tensor& basis,
                           c10::SymIntArrayRef cone, std::string_view ties) {
  std::vector<Tensor> all_dx, all_dz, all_dw;
  // The change of C y.
  const auto change = [](const Tensor& C, const Tensor& y, const Tensor& dy) {
    const Tensor dC = tangent(C);
    return plus(dC.defined() ? times_tangent(dC, y) : Tensor(), dy.defined() ? times(primal(C), dy) : Tensor());
  };
  const Tensor du = tangent(u);
  Tensor dx = tangent(x);
  for (std::int64_t s = 0; s < u.size(-2); ++s) {
    const Tensor start = start_of(primal(x), x_next, s), input = step_of(primal(u), s);
    const Tensor d_input = du.defined() ? step_of(du, s) : Tensor();
    Tensor r = plus(plus(change(E, start, dx), change(H, input, d_input)),
                    plus(change(M, step_of(z, s), Tensor()), tangent(q)));
    if (!r.defined()) r = at::zeros_like(step_of(z, s));
    Tensor dz, dw;
    const auto piece = [&](bool tied_active) {
      return tangent_op().call(primal(M), step_of(basis, s), r, tied_active, std::nullopt);
    };
    dz = for_ties(ties, [&](bool tied_active) { return std::get<0>(piece(tied_active)); });
    dw = for_ties(ties, [&](bool tied_active) { return std::get<1>(piece(tied_active)); });
    const Tensor held = sticking(cone, step_of(z, s), step_of(w, s));
    dx = plus(plus(plus(change(A, start, dx), change(B, input, d_input)),
                   plus(change(D, step_of(z, s), dz), change(G, moving(held, step_of(w, s)), moving(held, dw)))),
              tangent(d));
    all_dx.push_back(dx.expand_symint(step_of(x_next, s).sym_sizes()));
    all_dz.push_back(dz.expand_symint(step_of(z, s).sym_sizes()));
    all_dw.push_back(dw.expand_symint(step_of(w, s).sym_sizes()));
  }
  if (all_dx.empty()) return {at::zeros_like(x_next), at::zeros_like(z), at::zeros_like(w)};
  return {at::stack(all_dx, -2), at::stack(all_dz, -2), at::stack(all_dw, -2)};
}

Tensors<6> simulate_lcs_with_basis_autograd(c10::DispatchKeySet keys, const Tensor& A, const Tensor& B, const Tensor& D,
                                            const Tensor& G, const Tensor& d, const Tensor& E, const Tensor& H,
                                            const Tensor& M, const Tensor& q, const Tensor& x, const Tensor& u,
                                            OptionalCone cone, std::string_view ties, std::optional<double> tolerance) {
  const auto node = make_node<rollout_backward>("LcpSimulateLcsBackward", A, B, D, G, d, E, H, M, q, x, u);
  auto [x_next, z, w, status, residual, basis] =
      below_autograd(simulate_lcs_with_basis_op(), keys, A, B, D, G, d, E, H, M, q, x, u, cone, ties, tolerance);
  set_history(node, {x_next, z, w});
  if (has_tangent(A, B, D, G, d, E, H, M, q, x, u)) {
    const auto [dx, dz, dw] = rollout_tangent(A, B, D, G, d, E, H, M, q, x, u, primal(x_next), primal(z), primal(w),
                                              basis, pairs_of(cone), ties);
    x_next._set_fw_grad(dx, 0, false);
    z._set_fw_grad(dz, 0, false);
    w._set_fw_grad(dw, 0, false);
  }
  if (node) {
    node->save(A, B, D, G, E, H, M, x, u, x_next, z, w, basis, shape_of(d), shape_of(q), pairs_of(cone).vec(),
               std::string(ties));
  }
  return {x_next, z, w, status, residual, basis};
}

Tensors<5> simulate_lcs_autograd(c10::DispatchKeySet keys, const Tensor& A, const Tensor& B, const Tensor& D,
                                 const Tensor& G, const Tensor& d, const Tensor& E, const Tensor& H, const Tensor& M,
                                 const Tensor& q, const Tensor& x, const Tensor& u, OptionalCone cone,
                                 std::string_view ties, std::optional<double> tolerance) {
  int place = 0;
  for (const Tensor* const tensor : {&A, &B, &D, &G, &d, &E, &H, &M, &q, &x, &u}) {
    check_layout(kSimulateLcs.arguments()[place++].name, *tensor);
  }
  if (!needs_derivative(A, B, D, G, d, E, H, M, q, x, u)) {
    return below_autograd(simulate_lcs_op(), keys, A, B, D, G, d, E, H, M, q, x, u, cone, ties, tolerance);
  }
  const auto [x_next, z, w, status, residual, basis] =
      simulate_lcs_with_basis_autograd(keys, A, B, D, G, d, E, H, M, q, x, u, cone, ties, tolerance);
  return {x_next, z, w, status, residual};
}

Tensors<11> simulate_lcs_adjoint_autograd(c10::DispatchKeySet keys, const Tensor& A, const Tensor& B, const Tensor& D,
                                          const Tensor& G, const Tensor& E, const Tensor& H, const Tensor& M,
                                          const Tensor& x, const Tensor& u, const Tensor& x_next, const Tensor& z,
                                          const Tensor& w, const Tensor& basis, const Tensor& g_x_next,
                                          const Tensor& g_z, const Tensor& g_w, c10::SymIntArrayRef cone,
                                          std::string_view ties, std::int64_t wanted) {
  if (needs_derivative(A, B, D, G, E, H, M, x, u, x_next, z, w, g_x_next, g_z, g_w)) {
    return adjoint_formula(A, B, D, G, E, H, M, x, u, x_next, z, w, basis, g_x_next, g_z, g_w, cone, ties, wanted);
  }
  return below_autograd(simulate_lcs_adjoint_op(), keys, A, B, D, G, E, H, M, x, u, x_next, z, w, basis, g_x_next, g_z,
                        g_w, cone, ties, wanted);
}

LCP_LIBRARY_IMPL(Autograd, library) {
  library.impl("simulate_lcs", TORCH_FN(simulate_lcs_autograd));
  library.impl("_simulate_lcs_with_basis", TORCH_FN(simulate_lcs_with_basis_autograd));
  library.impl("_simulate_lcs_adjoint", TORCH_FN(simulate_lcs_adjoint_autograd));
}

}  // namespace
}  // namespace lcp::ops
