#include "lcp/directional_derivative.h"

#include "ops/certify/operators.h"

namespace lcp {

DirectionalDerivative directional_derivative(const at::Tensor& M, const at::Tensor& q, const at::Tensor& z,
                                             const at::Tensor& dM, const at::Tensor& dq) {
  auto [dz, dw, status] = ops::directional_derivative_op().call(M, q, z, dM, dq);
  return {dz, dw, status};
}

at::Tensor gradient_radius(const at::Tensor& M, const at::Tensor& q, const at::Tensor& z, const at::Tensor& dq) {
  return ops::gradient_radius_op().call(M, q, z, dq);
}

}  // namespace lcp
