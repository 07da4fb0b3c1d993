// Which rollouts are one call of lcp::_rollout.
#pragma once

#include <ATen/core/Tensor.h>

namespace lcp::physics {

/// Whether lcp::_rollout takes such tensors: it has a kernel for the CPU alone.
bool can_roll_out(at::TensorList x);

}  // namespace lcp::physics
