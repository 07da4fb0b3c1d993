// Shapes without data: what torch.compile, torch.export and the meta device see.
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <torch/library.h>

#include "ops/schema.h"

namespace lcp::ops {
namespace {

using Shape = c10::SymDimVector;

Tensor empty(const Shape& shape, const Tensor& like) { return at::empty_symint(shape, like.options()); }

Tensor empty(const Shape& shape, const Tensor& like, at::ScalarType type) {
  return at::empty_symint(shape, like.options().dtype(type));
}

Four solve_blocks_meta(const Tensor& H, const Tensor& h, std::int64_t num_equations, const std::optional<Tensor>& guess,
                       std::string_view method, std::string_view ties, double kappa, std::optional<double> tolerance,
                       std::optional<std::int64_t> max_pivots) {
  const auto batch = check_solve(H, h, num_equations, {guess, method, ties, kappa, tolerance, max_pivots});
  const auto shape = vector_shape(batch, H);
  return {empty(shape, h), empty(shape, h), empty(batch, h, at::kChar), empty(shape, h, at::kChar)};
}

Three solve_meta(const Tensor& M, const Tensor& q, const std::optional<Tensor>& guess, std::string_view method,
                 std::string_view ties, double kappa, std::optional<double> tolerance,
                 std::optional<std::int64_t> max_pivots) {
  auto [z, w, status, basis] = solve_blocks_meta(M, q, 0, guess, method, ties, kappa, tolerance, max_pivots);
  return {z, w, status};
}

Two piece_meta(const Tensor& M, const Tensor& q, const Tensor& z, const Tensor& w, const Tensor& basis, bool) {
  check_derivative(M, basis, {{"q", q}, {"z", z}, {"w", w}});
  return {at::empty_like(z), at::empty_like(w)};
}

Two tangent_meta(const Tensor& M, const Tensor& basis, const Tensor& r, bool) {
  const auto shape = vector_shape(check_derivative(M, basis, {{"r", r}}), M);
  return {empty(shape, r), empty(shape, r)};
}

Tensor adjoint_meta(const Tensor& M, const Tensor& basis, const Tensor& g_z, const Tensor& g_w, bool) {
  return empty(vector_shape(check_derivative(M, basis, {{"g_z", g_z}, {"g_w", g_w}}), M), g_z);
}

Two path_point_meta(const Tensor& M, const Tensor& q, const Tensor& z_0, std::int64_t, double) {
  const auto shape = vector_shape(check_shapes({{"M", M}}, {{"q", q}, {"z_0", z_0}}), M);
  return {empty(shape, q), empty(shape, q)};
}

Two path_derivative_meta(const Tensor& M, const Tensor& a, const Tensor& b, const Tensor& r, const Tensor& s) {
  const auto shape = vector_shape(check_shapes({{"M", M}}, {{"a", a}, {"b", b}, {"r", r}, {"s", s}}), M);
  return {empty(shape, a), empty(shape, a)};
}

std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor> certify_meta(const Tensor& M, const Tensor& q, const Tensor& z,
                                                                std::optional<double> tolerance) {
  check_tolerance(tolerance);
  const auto batch = check_shapes({{"M", M}}, {{"q", q}, {"z", z}});
  return {empty(batch, z), empty(batch, z), empty(batch, z), empty(batch, z, at::kLong),
          empty(vector_shape(batch, M), z, at::kBool)};
}

Three directional_derivative_meta(const Tensor& M, const Tensor& q, const Tensor& z, const Tensor& dM,
                                  const Tensor& dq) {
  const auto batch = check_shapes({{"M", M}, {"dM", dM}}, {{"q", q}, {"z", z}, {"dq", dq}});
  const auto shape = vector_shape(batch, M);
  return {empty(shape, z), empty(shape, z), empty(batch, z, at::kChar)};
}

Tensor gradient_radius_meta(const Tensor& M, const Tensor& q, const Tensor& z, const Tensor& dq) {
  return empty(check_shapes({{"M", M}}, {{"q", q}, {"z", z}, {"dq", dq}}), z);
}

Tensor sum_outer_meta(const Tensor& t, const Tensor&, c10::SymIntArrayRef size) {
  return at::empty_symint(size, t.options());
}

TORCH_LIBRARY_IMPL(lcp, Meta, library) {
  library.impl("solve", TORCH_FN(solve_meta));
  library.impl("_solve_blocks", TORCH_FN(solve_blocks_meta));
  library.impl("certify", TORCH_FN(certify_meta));
  library.impl("directional_derivative", TORCH_FN(directional_derivative_meta));
  library.impl("gradient_radius", TORCH_FN(gradient_radius_meta));
  library.impl("_piece", TORCH_FN(piece_meta));
  library.impl("_tangent", TORCH_FN(tangent_meta));
  library.impl("_adjoint", TORCH_FN(adjoint_meta));
  library.impl("_path_point", TORCH_FN(path_point_meta));
  library.impl("_path_tangent", TORCH_FN(path_derivative_meta));
  library.impl("_path_adjoint", TORCH_FN(path_derivative_meta));
  library.impl("_sum_outer", TORCH_FN(sum_outer_meta));
}

}  // namespace
}  // namespace lcp::ops
