// Shapes without data: what torch.compile, torch.export and the meta device see.
#include <ATen/ops/empty.h>
#include <torch/library.h>

#include "ops/schema.h"

namespace lcp::ops {
namespace {

std::tuple<Tensor, Tensor, Tensor> solve_meta(const Tensor& M, const Tensor& q, const std::optional<Tensor>& guess,
                                              std::string_view method, std::string_view ties, double kappa,
                                              std::optional<double> tolerance, std::optional<std::int64_t> max_pivots) {
  const auto batch = check_solve(M, q, {guess, method, ties, kappa, tolerance, max_pivots});
  const auto shape = vector_shape(batch, M);
  return {at::empty_symint(shape, q.options()), at::empty_symint(shape, q.options()),
          at::empty_symint(batch, q.options().dtype(at::kChar))};
}

std::tuple<Tensor, Tensor> solve_tangent_meta(const Tensor& M, const Tensor& z, const Tensor& w, const Tensor& r) {
  const auto shape = vector_shape(check_derivative(M, {&z, &w, &r}), M);
  return {at::empty_symint(shape, z.options()), at::empty_symint(shape, z.options())};
}

Tensor solve_adjoint_meta(const Tensor& M, const Tensor& z, const Tensor& w, const Tensor& g_z, const Tensor& g_w) {
  return at::empty_symint(vector_shape(check_derivative(M, {&z, &w, &g_z, &g_w}), M), z.options());
}

Tensor sum_outer_meta(const Tensor& t, const Tensor&, c10::SymIntArrayRef size) {
  return at::empty_symint(size, t.options());
}

TORCH_LIBRARY_IMPL(lcp, Meta, library) {
  library.impl("solve", TORCH_FN(solve_meta));
  library.impl("_solve_tangent", TORCH_FN(solve_tangent_meta));
  library.impl("_solve_adjoint", TORCH_FN(solve_adjoint_meta));
  library.impl("_sum_outer", TORCH_FN(sum_outer_meta));
}

}  // namespace
}  // namespace lcp::ops
