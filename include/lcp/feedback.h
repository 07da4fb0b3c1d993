// A linear feedback of the state, which the rollouts of all systems with inputs u take beside these.
#pragma once

#include <ATen/core/Tensor.h>

namespace lcp {

/// What acts in a step is u + K e, where e = reference - x is the error of the state x before the step. The state of k
/// numbers is what `simulate` takes, its tensors one behind another. Results are differentiable in all tensors of the
/// feedback. They are those of a loop over single steps with these inputs, which certificates take as their u.
template <class State>
struct Feedback {
  /// The gains: [m, k] for m inputs, or with the dimensions before that which u has, such as [steps, ..., m, k]. Their
  /// batch dimensions broadcast; the number of steps may be 1.
  at::Tensor K;

  /// What the state should be: each tensor as that of a state, or with the dimensions before that which u has, such as
  /// [steps, ..., k]. Its number of steps may be 1.
  State reference;
};

}  // namespace lcp
