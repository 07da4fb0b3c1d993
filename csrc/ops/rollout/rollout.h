// What modules of tensor code need of lcp::_rollout.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/SymIntArrayRef.h>

#include <optional>
#include <string_view>
#include <vector>

#include "lcp/feedback.h"
#include "ops/rollout/step_text.h"
#include "rigid/scene.h"

namespace lcp::ops {

/// The results of a step of a kind, see kind.h, for tensors on the CPU.
///   feedback: what a closed loop has behind the differentiable inputs, K, [..., T, m d], and the reference,
///   [..., T, k], see closed_loop.cpp; or nothing.
std::vector<at::Tensor> roll_out(std::string_view step, at::TensorList x, at::TensorList feedback = {});

/// That of a state x, [..., k], and inputs u, [..., T, m]. Throws c10::Error where a shape does not fit.
std::vector<at::Tensor> feedback_of(const std::optional<Feedback<at::Tensor>>& feedback, const at::Tensor& x,
                                    const at::Tensor& u);

/// A tensor of a feedback, [size...] or with the dimensions of inputs before that, expanded to all steps. Throws
/// c10::Error, with its name, where it is neither.
///   steps_first: whether the steps are the first of these dimensions; else they are the last.
at::Tensor of_all_steps(const char* name, const at::Tensor& x, c10::SymIntArrayRef size, const c10::SymInt& steps,
                        bool steps_first);

/// A rollout of a robot, with the derivatives of its end in its first state and in a constant control.
struct LinearizedRollout {
  std::vector<at::Tensor> path;  ///< the results of roll_out
  at::Tensor A;                  ///< [..., 2 d, 2 d], NaN where a step was not solved
  at::Tensor B;                  ///< [..., 2 d, a], as A
};
LinearizedRollout linearize_rollout(std::string_view step, at::TensorList x);

/// A rollout of a robot, and what is true of its steps, see rigid::StepCertificates.
struct CertifiedRollout {
  std::vector<at::Tensor> path;      ///< the results of roll_out
  at::Tensor residual, margin, gap;  ///< [..., T]
};
CertifiedRollout certify_rollout(std::string_view step, at::TensorList x);

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
