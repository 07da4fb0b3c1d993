#include "lcp/physics/friction_cone.h"

#include <ATen/ATen.h>

#include <numbers>

namespace lcp::physics {
namespace {

at::Tensor turned(const at::Tensor& a) { return at::stack({-a.select(-1, 1), a.select(-1, 0)}, -1); }

at::Tensor unit(const at::Tensor& a) {
  const at::Tensor length = a.norm(2, -1, true);
  return at::where(length > 0, a / length, 0);
}

}  // namespace

at::Tensor friction_directions(std::int64_t n, const at::TensorOptions& options) {
  TORCH_CHECK(n >= 4 && n % 2 == 0, "directions must be even and at least 4; got ", n);
  const at::Tensor angle = at::arange(n / 2, at::kDouble) * (2 * std::numbers::pi / static_cast<double>(n));
  at::Tensor half = at::stack({at::cos(angle), at::sin(angle)});
  half = at::where(half.abs() < 1e-15, 0, half);  // cos(pi / 2)
  return at::cat({half, -half}, 1).to(options);
}

at::Tensor aligned_directions(const at::Tensor& a, const at::Tensor& b) {
  constexpr double kParallel = 1e-6;  // the smallest sine of the angle between directions that are used both
  const auto both = at::broadcast_tensors({unit(a.detach()), unit(b.detach())});
  const auto zero = [](const at::Tensor& x) { return (x == 0).all(-1, true); };
  at::Tensor first = at::where(zero(both[0]), -turned(both[1]), both[0]);
  const at::Tensor x_axis = at::zeros_like(first).select_scatter(at::ones_like(first.select(-1, 0)), -1, 0);
  first = at::where(zero(first), x_axis, first);
  const at::Tensor sine = (turned(first) * both[1]).sum(-1, true);
  const at::Tensor second = at::where(sine.abs() > kParallel, both[1], turned(first));
  return at::stack({first, second, -first, -second}, -1);
}

at::Tensor span_plane(const at::Tensor& D) {
  const at::Tensor angle = std::get<0>(at::atan2(D.select(-2, 1), D.select(-2, 0)).sort(-1));
  const at::Tensor turn = angle.slice(-1, 0, 1) + 2 * std::numbers::pi;
  const at::Tensor gap = at::cat({angle.slice(-1, 1), turn}, -1) - angle;
  return (gap < std::numbers::pi - 1e-12).all(-1);
}

}  // namespace lcp::physics
