// What modules of tensor code need of lcp::_rollout.
#pragma once

#include <ATen/core/Tensor.h>

#include <string_view>
#include <vector>

#include "ops/rollout/step_text.h"
#include "rigid/scene.h"

namespace lcp::ops {

/// The results of a step of a kind, see kind.h, for tensors on the CPU.
std::vector<at::Tensor> roll_out(std::string_view step, at::TensorList x);

/// The tangents of the differentiable results `path` of roll_out, for those of the differentiable inputs.
std::vector<at::Tensor> rollout_tangent(std::string_view step, at::TensorList x, at::TensorList path, at::TensorList d);

/// Adds the links, joints and actuators of the trees of a step of rigid bodies to a scene with its bodies, balls and
/// pairs, and the pairs of limits: the text has the parent of each link, -1 for the world; for each joint its link and
/// its kind; the joint of each actuator, and their ranges; for each pair of capsules its number and their other ends,
/// -1 for a ball; and for each limit its joint, and 1 if it is the upper one. Throws c10::Error where they do not fit.
void add_trees(const StepText& step, rigid::Scene& scene);

/// The differentiable results of a rollout in operators of tensors: its derivatives of higher order are theirs, and all
/// of them where contact is smoothed.
using ByTensors = std::vector<at::Tensor> (*)(const StepText& step, const std::vector<at::Tensor>& x);

/// Gives a kind its ByTensors, as a constant of this type is initialised.
struct RegisterByTensors {
  RegisterByTensors(std::string_view kind, ByTensors function);
};

}  // namespace lcp::ops
