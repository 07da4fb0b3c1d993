#include "physics/rollout_operator.h"

#include <algorithm>

#include "ops/rollout/rollout.h"

namespace lcp::physics {

bool can_roll_out(at::TensorList x) {
  return std::all_of(x.begin(), x.end(), [](const at::Tensor& each) {
    return (each.device().is_cpu() || each.is_meta()) && each.layout() == at::kStrided;
  });
}

Tensors roll_out(const std::string& step, const Tensors& x) { return ops::roll_out(step, x); }

}  // namespace lcp::physics
