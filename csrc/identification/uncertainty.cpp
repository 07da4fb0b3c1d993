#include "lcp/identification/uncertainty.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <limits>

namespace lcp::identification {

using at::Tensor;

// A singular value of at most this part of the largest counts as 0: a combination of parameters that the data do not
// determine. lcp::learning::identifiability has the same rule for one tall matrix and keeps no batch of covariances.
// Neither module depends on the other; a test compares their ranks.
constexpr double kRankTolerance = 1e-10;

Uncertainty uncertainty(const Tensor& jacobian, const Tensor& noise) {
  TORCH_CHECK(jacobian.dim() == 3 && jacobian.scalar_type() == at::kDouble, "jacobian must be [b, m, p], float64; got ",
              jacobian.sizes(), ", ", jacobian.scalar_type());
  const c10::NoGradGuard no_grad;
  const Tensor length = jacobian.square().sum(-2).sqrt();
  const Tensor scale = at::where(length > 0, length, 1);
  const std::int64_t b = jacobian.size(0), m = jacobian.size(1), p = jacobian.size(2);
  const Tensor rows = at::constant_pad_nd(jacobian / scale.unsqueeze(-2), {0, 0, 0, std::max<std::int64_t>(p - m, 0)});
  const auto [U, values, V] = at::linalg_svd(rows, /*full_matrices=*/false);  // rows = U diag(values) V, V: [b, p, p]
  const Tensor determined = values > kRankTolerance * values.amax(-1, true);
  const Tensor inverse = at::where(determined, values, 1).reciprocal().masked_fill(~determined, 0);
  const Tensor root = V.mT() * inverse.unsqueeze(-2) / scale.unsqueeze(-1);  // [b, p, p]: root root' = (J'J)^+
  const Tensor deviation = noise.to(at::kDouble).expand({b}).unsqueeze(-1);
  const Tensor unseen = V * (~determined).unsqueeze(-1);
  const Tensor undetermined = unseen.abs().amax(-2) > 1e-6;  // The null space has a component of these parameters.
  const Tensor std =
      (deviation * root.square().sum(-1).sqrt()).masked_fill(undetermined, std::numeric_limits<double>::infinity());
  return {deviation.square().unsqueeze(-1) * (root.unsqueeze(-2) * root.unsqueeze(-3)).sum(-1), std, determined.sum(-1),
          unseen.flip(-2)};
}

}  // namespace lcp::identification
