// Shapes without data of the operators of compliant contact.
#include <ATen/ops/empty.h>
#include <torch/library.h>

#include "ops/contact/schema.h"

namespace lcp::ops {
namespace {

Tensor empty(const c10::SymDimVector& shape, const Tensor& like) { return at::empty_symint(shape, like.options()); }

Tensor empty(const c10::SymDimVector& shape, const Tensor& like, at::ScalarType type) {
  return at::empty_symint(shape, like.options().dtype(type));
}

std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor> contact_point_meta(
    const Tensor& A, const Tensor& v_free, const Tensor& J, const Tensor& v_hat, const Tensor& R, const Tensor& mu,
    const std::optional<Tensor>& guess, std::optional<double> tolerance, std::optional<std::int64_t> max_iterations) {
  check_limits(tolerance, max_iterations);
  const ContactShapes shapes =
      check_contact(A, J, {{"v_free", v_free}, {guess ? "guess" : "v_free", guess ? *guess : v_free}},
                    {{"v_hat", v_hat}, {"R", R}}, {{"mu", mu}});
  return {empty(shapes.of_bodies(), v_free), empty(shapes.of_rows(), v_free), empty(shapes.of_rows(), v_free),
          empty(shapes.batch, v_free, at::kChar), empty(shapes.batch, v_free, at::kLong)};
}

Three certify_contact_meta(const Tensor& A, const Tensor& v_free, const Tensor& J, const Tensor& v_hat, const Tensor& R,
                           const Tensor& mu, const Tensor& v) {
  const auto batch =
      check_contact(A, J, {{"v_free", v_free}, {"v", v}}, {{"v_hat", v_hat}, {"R", R}}, {{"mu", mu}}).batch;
  return {empty(batch, v), empty(batch, v), empty(batch, v)};
}

std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor, Tensor> contact_adjoint_meta(const Tensor& A, const Tensor& J,
                                                                                const Tensor& R, const Tensor& mu,
                                                                                const Tensor& v, const Tensor& y,
                                                                                const Tensor& g_v, const Tensor& g_y,
                                                                                const Tensor& g_gamma) {
  const ContactShapes shapes = check_contact(A, J, {{"v", v}, {"g_v", g_v}},
                                             {{"R", R}, {"y", y}, {"g_y", g_y}, {"g_gamma", g_gamma}}, {{"mu", mu}});
  return {empty(shapes.of_bodies(), v), empty(shapes.of_bodies(), v),   empty(shapes.of_rows(), v),
          empty(shapes.of_rows(), v),   empty(shapes.of_contacts(), v), empty(shapes.of_rows(), v)};
}

Tensor contact_inverse_meta(const Tensor& A, const Tensor& J, const Tensor& K, const Tensor& g) {
  return empty(check_inverse(A, J, K, g).of_bodies(), g);
}

TORCH_LIBRARY_IMPL(lcp, Meta, library) {
  library.impl("certify_contact", TORCH_FN(certify_contact_meta));
  library.impl("_contact_point", TORCH_FN(contact_point_meta));
  library.impl("_contact_adjoint", TORCH_FN(contact_adjoint_meta));
  library.impl("_contact_inverse", TORCH_FN(contact_inverse_meta));
}

}  // namespace
}  // namespace lcp::ops
