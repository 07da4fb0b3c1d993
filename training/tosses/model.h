// What predicts tosses: a cube with learned parameters, or a network.
#pragma once

#include <torch/nn/module.h>
#include <torch/types.h>

#include <cstdint>
#include <string>

#include "lcp/physics/rigid_scene.h"

namespace lcp::training {

/// Of the files that models write.
constexpr std::int64_t kFormatVersion = 1;

struct TossModel : torch::nn::Module {
  torch::Tensor unsolved_windows =
      register_buffer("unsolved_windows", torch::zeros({}, torch::kLong));  ///< in training

  /// The motion of [b, 1] bodies from `start` on, tensors [steps, b, 1, ...], of which `next` and `status` are defined.
  virtual physics::RigidSolution roll_out(const physics::RigidState& start, std::int64_t steps) const = 0;

  /// [3], m: the recorded point of the body from its centre of mass, in the axes of the body.
  virtual torch::Tensor center() const { return torch::zeros({3}, torch::kDouble); }

  /// The model as a TorchScript file whose `forward(position [..., 3], orientation [..., 4], velocity [..., 3],
  /// angular_velocity [..., 3], steps)` returns the motion, (position [steps, ..., 3], orientation, velocity,
  /// angular_velocity, status [steps, ...]); its attributes are `rate`, steps a second,
  /// `gravity`, m/s^2, and `center`; what was learned are parameters that can be trained further.
  virtual std::string torchscript_bytes() const = 0;
};

}  // namespace lcp::training
