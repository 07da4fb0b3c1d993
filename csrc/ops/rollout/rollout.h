// What modules of tensor code need of lcp::_rollout.
#pragma once

#include <ATen/core/Tensor.h>

#include <string_view>
#include <vector>

#include "ops/rollout/step_text.h"

namespace lcp::ops {

/// The results of a step of a kind, see kind.h, for tensors on the CPU.
std::vector<at::Tensor> roll_out(std::string_view step, at::TensorList x);

/// The differentiable results of a rollout in operators of tensors: its derivatives of higher order are theirs, and all
/// of them where contact is smoothed.
using ByTensors = std::vector<at::Tensor> (*)(const StepText& step, const std::vector<at::Tensor>& x);

/// Gives a kind its ByTensors, as a constant of this type is initialised.
struct RegisterByTensors {
  RegisterByTensors(std::string_view kind, ByTensors function);
};

}  // namespace lcp::ops
