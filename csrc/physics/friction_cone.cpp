#include "lcp/physics/friction_cone.h"

#include <ATen/ATen.h>

#include <numbers>

namespace lcp::physics {

at::Tensor friction_directions(std::int64_t n, const at::TensorOptions& options) {
  TORCH_CHECK(n >= 4 && n % 2 == 0, "directions must be even and at least 4; got ", n);
  const at::Tensor angle = at::arange(n / 2, at::kDouble) * (2 * std::numbers::pi / static_cast<double>(n));
  at::Tensor half = at::stack({at::cos(angle), at::sin(angle)});
  half = at::where(half.abs() < 1e-15, 0, half);  // cos(pi / 2)
  return at::cat({half, -half}, 1).to(options);
}

}  // namespace lcp::physics
