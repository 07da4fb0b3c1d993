// Rollouts in one call of lcp::_rollout.
#pragma once

#include <string>

#include "physics/stepping.h"

namespace lcp::physics {

/// Whether lcp::_rollout takes such tensors: it has a kernel for the CPU alone.
bool can_roll_out(at::TensorList x);

/// The results of a step, see ops/rollout/kind.h.
Tensors roll_out(const std::string& step, const Tensors& x);

}  // namespace lcp::physics
