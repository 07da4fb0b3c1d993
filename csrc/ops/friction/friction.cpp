// lcp::solve_friction, and its C++ function.
#include <torch/library.h>

#include "lcp/certify_friction.h"
#include "lcp/solve_friction.h"
#include "ops/friction/operators.h"

namespace lcp::ops {
namespace {

Tensors<4> solve_friction_composite(const Tensor& A, const Tensor& v_free, const Tensor& J, const Tensor& b,
                                    const Tensor& mu, const std::optional<Tensor>& guess,
                                    std::optional<double> tolerance, std::optional<std::int64_t> max_iterations) {
  check(kSolveFriction, A, v_free, J, b, mu, guess, tolerance, max_iterations);
  const auto [v, gamma, u, status, iterations] =
      friction_point_op().call(A, v_free, J, b, mu, guess, tolerance, max_iterations);
  return {v, gamma, status, iterations};
}

TORCH_LIBRARY_IMPL(lcp, CompositeImplicitAutograd, library) {
  library.impl("solve_friction", TORCH_FN(solve_friction_composite));
}

// torch.vmap would else run it element by element.
TORCH_LIBRARY_IMPL(lcp, FuncTorchBatchedDecomposition, library) {
  library.impl("solve_friction", TORCH_FN(solve_friction_composite));
}

}  // namespace
}  // namespace lcp::ops

namespace lcp {

FrictionResult solve_friction(const at::Tensor& A, const at::Tensor& v_free, const at::Tensor& J, const at::Tensor& b,
                              const at::Tensor& mu, const FrictionOptions& options) {
  auto [v, gamma, status, iterations] =
      ops::solve_friction_op().call(A, v_free, J, b, mu, options.guess, options.tolerance, options.max_iterations);
  return {v, gamma, status, iterations};
}

FrictionCertificate certify_friction(const at::Tensor& A, const at::Tensor& v_free, const at::Tensor& J,
                                     const at::Tensor& b, const at::Tensor& mu, const at::Tensor& v,
                                     const at::Tensor& gamma) {
  auto [residual, margin, rank, unique] = ops::certify_friction_op().call(A, v_free, J, b, mu, v, gamma);
  return {residual, margin, rank, unique};
}

}  // namespace lcp
