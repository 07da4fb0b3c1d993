#include "lcp/learning/identifiability.h"

#include <ATen/ATen.h>

namespace lcp::learning {

Identifiability identifiability(const at::Tensor& features) {
  TORCH_CHECK(features.dim() == 2 && features.scalar_type() == at::kDouble,
              "features must be [samples, parameters], float64; got ", features.sizes(), ", ", features.scalar_type());
  constexpr double kCut = 1e-10;
  const at::Tensor norm = features.norm(2, 0);
  const at::Tensor scale = at::where(norm > 0, norm, at::ones_like(norm));
  // R of the QR decomposition has the singular values and right singular vectors of the features. Its size does not
  // depend on the number of samples.
  const at::Tensor R = std::get<1>(at::linalg_qr(features / scale, "r"));
  const auto [u, s, vh] = at::linalg_svd(R, /*full_matrices=*/true);
  const std::int64_t parameters = features.size(1);
  Identifiability result;
  if (s.numel() > 0) {
    const double largest = s[0].item<double>();
    result.rank = (s > kCut * largest).sum().item<std::int64_t>();
    if (result.rank > 0) result.condition = largest / s[result.rank - 1].item<double>();
  }
  // A null vector of the scaled features, divided by the scale, is a null vector of the features.
  const at::Tensor null_space = vh.slice(0, result.rank, parameters).t() / scale.unsqueeze(-1);
  result.null_space = null_space.numel() > 0 ? std::get<0>(at::linalg_qr(null_space)) : null_space;
  return result;
}

}  // namespace lcp::learning
