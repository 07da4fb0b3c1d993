// The operators of compliant contact that are made of others, and the C++ functions of all of them.
#include <ATen/TensorOperators.h>
#include <ATen/ops/diag_embed.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros_like.h>
#include <c10/util/Exception.h>

#include <numbers>

#include "lcp/add_equality.h"
#include "lcp/certify_contact.h"
#include "lcp/contact_dual.h"
#include "lcp/contact_parameters.h"
#include "lcp/solve_contact.h"
#include "ops/contact/operators.h"
#include "ops/contact/tensors.h"
#include "ops/derivative.h"
#include "ops/registration.h"

namespace lcp::ops {
namespace {

Tensors<4> solve_contact_composite(const Tensor& A, const Tensor& v_free, const Tensor& J, const Tensor& v_hat,
                                   const Tensor& R, const Tensor& mu, const std::optional<Tensor>& sizes,
                                   const std::optional<Tensor>& guess, std::optional<double> tolerance,
                                   std::optional<std::int64_t> max_iterations) {
  check(kSolveContact, A, v_free, J, v_hat, R, mu, sizes, guess, tolerance, max_iterations);
  const auto [v, y, gamma, status, iterations] =
      contact_point_op().call(A, v_free, J, v_hat, R, mu, sizes, guess, tolerance, max_iterations);
  return {v, gamma, status, iterations};
}

Tensors<2> add_equality_composite(const Tensor& A, const Tensor& v_free, const Tensor& J, const Tensor& v_hat,
                                  const Tensor& R) {
  check(kAddEquality, A, v_free, J, v_hat, R);
  const Tensor stiff = J / R.unsqueeze(-1);  // R^-1 J
  Shape sum = shape_of(stiff);               // over the constraints
  sum.back() = A.sym_size(-1);
  sum[sum.size() - 2] = 1;
  sum.push_back(A.sym_size(-1));
  const Tensor total = A + sum_outer(stiff, J, sum).squeeze(-3);
  const Tensor pull = times(A, v_free) + times(stiff.mT(), v_hat);
  return {total, times_inverse(total, pull)};
}

Tensor equality_impulses_composite(const Tensor& J, const Tensor& v_hat, const Tensor& R, const Tensor& v) {
  check(kEqualityImpulses, J, v_hat, R, v);
  return (v_hat - times(J, v)) / R;
}

Tensors<2> contact_dual_composite(const Tensor& A, const Tensor& v_free, const Tensor& J, const Tensor& v_hat,
                                  const Tensor& R) {
  check(kContactDual, A, v_free, J, v_hat, R);
  const Tensor solved = times_inverse(A.unsqueeze(-3), J);  // A^-1 J', the columns as rows
  const Tensor W = (J.unsqueeze(-2) * solved.unsqueeze(-3)).sum(-1);
  return {W + at::diag_embed(R), times(J, v_free) - v_hat};
}

Tensor delassus_diagonal_composite(const Tensor& A, const Tensor& J) {
  check(kDelassusDiagonal, A, J);
  Shape blocks = shape_of(J);
  blocks.insert(blocks.end() - 1, 3);
  blocks[blocks.size() - 3] = J.sym_size(-2) / 3;
  const Tensor rows = J.reshape_symint(blocks);  // [..., c, 3, n]
  const Tensor solved = times_inverse(A.unsqueeze(-3).unsqueeze(-3), rows);
  return (solved * rows).sum(-1).mean(-1);
}

Tensors<2> contact_parameters_composite(const Tensor& gap, const Tensor& stiffness, const Tensor& dissipation,
                                        const Tensor& delassus, double dt, double sigma, double beta) {
  for (const auto& [name, x] : {std::pair<const char*, const Tensor&>{"gap", gap},
                                {"stiffness", stiffness},
                                {"dissipation", dissipation},
                                {"delassus", delassus}}) {
    TORCH_CHECK(x.dim() >= 1, name, " must be [..., c]; got ", x.sym_sizes());
  }
  const c10::SymDimVector shape = with_call(
      kContactParameters, [](const Call& call) { return call.batch(); }, gap, stiffness, dissipation, delassus, dt,
      sigma, beta);
  const Tensor rest = dt + dissipation;
  const Tensor v_n = -gap / rest;
  const Tensor R_n =
      at::maximum(beta * beta / (4 * std::numbers::pi * std::numbers::pi) * delassus, 1 / (dt * stiffness * rest));
  const Tensor R_t = sigma * delassus;
  const auto rows = [&](const Tensor& t, const Tensor& n) {
    return at::stack({t.expand_symint(shape), t.expand_symint(shape), n.expand_symint(shape)}, -1).flatten(-2);
  };
  return {rows(at::zeros_like(v_n), v_n), rows(R_t, R_n)};
}

LCP_LIBRARY_IMPL(CompositeImplicitAutograd, library) {
  library.impl("solve_contact", TORCH_FN(solve_contact_composite));
  library.impl("add_equality", TORCH_FN(add_equality_composite));
  library.impl("equality_impulses", TORCH_FN(equality_impulses_composite));
  library.impl("contact_dual", TORCH_FN(contact_dual_composite));
  library.impl("delassus_diagonal", TORCH_FN(delassus_diagonal_composite));
  library.impl("contact_parameters", TORCH_FN(contact_parameters_composite));
}

// Without these decompositions, torch.vmap would run the operators element by element.
LCP_LIBRARY_IMPL(FuncTorchBatchedDecomposition, library) {
  library.impl("solve_contact", TORCH_FN(solve_contact_composite));
  library.impl("add_equality", TORCH_FN(add_equality_composite));
  library.impl("equality_impulses", TORCH_FN(equality_impulses_composite));
  library.impl("contact_dual", TORCH_FN(contact_dual_composite));
  library.impl("delassus_diagonal", TORCH_FN(delassus_diagonal_composite));
  library.impl("contact_parameters", TORCH_FN(contact_parameters_composite));
}

}  // namespace
}  // namespace lcp::ops

namespace lcp {

ContactResult solve_contact(const at::Tensor& A, const at::Tensor& v_free, const at::Tensor& J, const at::Tensor& v_hat,
                            const at::Tensor& R, const at::Tensor& mu, const ContactOptions& options) {
  auto [v, gamma, status, iterations] = ops::solve_contact_op().call(
      A, v_free, J, v_hat, R, mu, options.sizes, options.guess, options.tolerance, options.max_iterations);
  return {v, gamma, status, iterations};
}

ContactCertificate certify_contact(const at::Tensor& A, const at::Tensor& v_free, const at::Tensor& J,
                                   const at::Tensor& v_hat, const at::Tensor& R, const at::Tensor& mu,
                                   const at::Tensor& v, const std::optional<at::Tensor>& sizes) {
  auto [residual, margin, condition] = ops::certify_contact_op().call(A, v_free, J, v_hat, R, mu, v, sizes);
  return {residual, margin, condition};
}

FreeMotion add_equality(const at::Tensor& A, const at::Tensor& v_free, const at::Tensor& J, const at::Tensor& v_hat,
                        const at::Tensor& R) {
  auto [total, v] = ops::add_equality_op().call(A, v_free, J, v_hat, R);
  return {total, v};
}

at::Tensor equality_impulses(const at::Tensor& J, const at::Tensor& v_hat, const at::Tensor& R, const at::Tensor& v) {
  return ops::equality_impulses_op().call(J, v_hat, R, v);
}

ContactDual contact_dual(const at::Tensor& A, const at::Tensor& v_free, const at::Tensor& J, const at::Tensor& v_hat,
                         const at::Tensor& R) {
  auto [H, r] = ops::contact_dual_op().call(A, v_free, J, v_hat, R);
  return {H, r};
}

ContactParameters contact_parameters(const at::Tensor& gap, const at::Tensor& stiffness, const at::Tensor& dissipation,
                                     const at::Tensor& delassus, double dt, const RegularizationOptions& options) {
  auto [v_hat, R] =
      ops::contact_parameters_op().call(gap, stiffness, dissipation, delassus, dt, options.sigma, options.beta);
  return {v_hat, R};
}

at::Tensor delassus_diagonal(const at::Tensor& A, const at::Tensor& J) {
  return ops::delassus_diagonal_op().call(A, J);
}

}  // namespace lcp
