#include "lcp/physics/direct_friction.h"

#include <ATen/ATen.h>

#include "physics/stepping.h"

namespace lcp::physics {
namespace {

using at::Tensor;

// A B and A x for each element, as sums whose order does not depend on the size of the batch.
Tensor product(const Tensor& A, const Tensor& B) { return (A.unsqueeze(-1) * B.unsqueeze(-3)).sum(-2); }
Tensor applied(const Tensor& A, const Tensor& x) { return (A * x.unsqueeze(-2)).sum(-1); }

}  // namespace

Problem direct_friction_problem(const Tensor& J, const Tensor& inverse_mass, const Tensor& v_free,
                                const Tensor& limit) {
  TORCH_CHECK(J.dim() >= 2, "J must be [..., r, k]; got ", J.sizes());
  const std::int64_t r = J.size(-2), k = J.size(-1);
  TORCH_CHECK(inverse_mass.dim() >= 2 && inverse_mass.size(-1) == k && inverse_mass.size(-2) == k,
              "inverse_mass must be [..., k, k] with k = ", k, "; got ", inverse_mass.sizes());
  TORCH_CHECK(v_free.dim() >= 1 && v_free.size(-1) == k, "v_free must be [..., k] with k = ", k, "; got ",
              v_free.sizes());
  TORCH_CHECK(limit.dim() >= 1 && limit.size(-1) == r, "limit must be [..., r] with r = ", r, "; got ", limit.sizes());
  const Tensor W = product(product(J, inverse_mass), J.mT());
  const Tensor one = at::eye(r, W.options()).expand_as(W);
  const Tensor free = applied(J, v_free) - applied(W, limit);
  return {at::cat({at::cat({W, one}, -1), at::cat({-one, at::zeros_like(W)}, -1)}, -2),
          at::cat({free, (2 * limit).expand_as(free)}, -1)};
}

DirectFrictionStep read_direct_friction(const Tensor& z, const Tensor& w, const Tensor& J, const Tensor& inverse_mass,
                                        const Tensor& v_free) {
  const std::int64_t r = J.size(-2);
  const Tensor impulse = (z.slice(-1, 0, r) - w.slice(-1, r)) / 2;
  return {v_free + applied(inverse_mass, applied(J.mT(), impulse)), w.slice(-1, 0, r) - z.slice(-1, r), impulse};
}

}  // namespace lcp::physics
