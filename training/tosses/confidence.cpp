#include "tosses/confidence.h"

#include <ATen/ATen.h>

#include <limits>
#include <vector>

namespace lcp::training {

using torch::Tensor;

Tensor standard_deviations(const std::function<Tensor(const Tensor&)>& residuals, const Tensor& at, double step,
                           const Tensor& toss) {
  constexpr double kLargestChange = 1, kFloor = 1e-2;
  const std::int64_t p = at.size(0), tosses = toss.max().item<std::int64_t>() + 1;
  const Tensor center = residuals(at);
  Tensor kept = center.isfinite().all(-1);
  std::vector<Tensor> columns;
  for (std::int64_t k = 0; k < p; ++k) {
    Tensor moved = at::zeros_like(at);
    moved[k] = step;
    const Tensor change = residuals(at + moved) - residuals(at - moved);
    kept = kept & (change.norm(2, {-1}) <= kLargestChange);
    columns.push_back(change / (2 * step));
  }
  const Tensor r = at::where(kept.unsqueeze(-1), center, 0);
  const Tensor length = (r.square().sum(-1) + kFloor * kFloor).sqrt();
  const Tensor J = at::where(kept.unsqueeze(-1).unsqueeze(-1), at::stack(columns, -1), 0);  // [..., b, 2, 3, p]
  const Tensor slope = (J * (r / length.unsqueeze(-1)).unsqueeze(-1)).sum(-2);              // [..., b, 2, p]
  const Tensor root = length.rsqrt().unsqueeze(-1);
  const auto products = [p](const Tensor& x) {
    const Tensor rows = x.reshape({-1, p});
    return rows.t().matmul(rows);
  };
  const Tensor H = products(J * root.unsqueeze(-1)) - products(slope * root);
  const Tensor of_windows = slope.sum(-2).flatten(0, -3).sum(0);  // [b, p]
  const Tensor G = at::zeros({tosses, p}, at.options()).index_add(0, toss, of_windows);
  const Tensor unit = H.diagonal().rsqrt();  // of each parameter
  const Tensor seen = unit.isfinite();
  const Tensor scale = at::where(seen, unit, 0);
  const Tensor inverse =
      at::linalg_pinv(scale.unsqueeze(1) * H * scale, /*rcond=*/1e-12, /*hermitian=*/true) * scale.unsqueeze(1) * scale;
  const Tensor variances = (G.matmul(inverse)).square().sum(0);
  return at::where(seen, variances.sqrt(), std::numeric_limits<double>::infinity());
}

}  // namespace lcp::training
