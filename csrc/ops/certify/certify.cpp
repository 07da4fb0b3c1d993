#include "lcp/certify.h"

#include "ops/certify/operators.h"

namespace lcp {

Certificate certify(const at::Tensor& M, const at::Tensor& q, const at::Tensor& z, std::optional<double> tolerance,
                    const std::optional<at::Tensor>& sizes) {
  auto [residual, margin, condition, rank, ties] = ops::certify_op().call(M, q, z, sizes, tolerance);
  return {residual, margin, condition, rank, ties};
}

}  // namespace lcp
