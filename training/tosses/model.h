// What predicts tosses: a cube with learned parameters, or a network.
#pragma once

#include <torch/nn/module.h>
#include <torch/types.h>

#include <cstdint>
#include <string>

#include "lcp/identification/motion_windows.h"
#include "lcp/nn/torchscript.h"
#include "lcp/physics/rigid_scene.h"

namespace lcp::training {

/// Of the files that models write.
constexpr std::int64_t kFormatVersion = 2;

/// The inputs of `step` of these files.
inline nn::ModelInputs toss_inputs() {
  const auto example = [](std::int64_t size) { return torch::zeros({1, size}, torch::kDouble); };
  return {{"position", example(3)},
          {"orientation", example(4)},
          {"velocity", example(3)},
          {"angular_velocity", example(3)}};
}

struct TossModel : torch::nn::Module {
  torch::Tensor unsolved_windows =
      register_buffer("unsolved_windows", torch::zeros({}, torch::kLong));  ///< in training

  /// The motion of [b, 1] bodies from `start` on, tensors [steps, b, 1, ...], of which `next` and `status` are defined.
  virtual physics::RigidSolution roll_out(const physics::RigidState& start, std::int64_t steps) const = 0;

  /// [3], m: the recorded point of the body from its centre of mass, in the axes of the body.
  virtual torch::Tensor center() const { return torch::zeros({3}, torch::kDouble); }

  /// The model as a TorchScript file whose `forward(position [..., 3], orientation [..., 4], velocity [..., 3],
  /// angular_velocity [..., 3], steps)` returns the motion, (position [steps, ..., 3], orientation, velocity,
  /// angular_velocity, status [steps, ...]). `step` takes and returns the same for one step, without the dimension of
  /// the steps. The attributes are `rate`, steps a second, `gravity`, m/s^2, `center`, and that of
  /// lcp::nn::register_input_sizes; what was learned are parameters that can be trained further.
  virtual std::string torchscript_bytes() const = 0;
};

/// The rollouts of a model, which must outlive them.
inline identification::MotionWindows::RollOut rollouts_of(const TossModel& model) {
  return [&model](const physics::RigidState& start, std::int64_t steps) { return model.roll_out(start, steps); };
}

}  // namespace lcp::training
