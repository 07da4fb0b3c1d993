#include "physics/rollout_operator.h"

#include <algorithm>

namespace lcp::physics {

bool can_roll_out(at::TensorList x) {
  return std::all_of(x.begin(), x.end(), [](const at::Tensor& each) {
    return (each.device().is_cpu() || each.is_meta()) && each.layout() == at::kStrided;
  });
}

}  // namespace lcp::physics
