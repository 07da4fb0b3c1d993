// The systems that train_network simulates.
#pragma once

#include <ATen/core/Generator.h>
#include <torch/types.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "network/motion.h"
#include "run/command_line.h"

namespace lcp::training {

/// A system as a map of x = (positions, velocities, inputs), [..., n, p], to the velocities after a step, [..., n, d].
/// Without noise and in closed form, or by an LCP, so that a velocity is exactly 0 where the system rests.
struct MotionSystem {
  std::string name;
  std::string help;  ///< a line for --help
  MotionColumns columns;
  std::function<torch::Tensor(std::int64_t count, at::Generator generator)> draw;  ///< random x, [count, p]
  std::vector<std::string> constants;  ///< the names of the k physical constants of the model
  /// v_next, by the constants of the system times `factors`, [..., k], which are broadcast with the samples of x.
  std::function<torch::Tensor(const torch::Tensor& x, const torch::Tensor& factors)> model;
  /// The positions after a step, [..., number of positions].
  std::function<torch::Tensor(const torch::Tensor& x, const torch::Tensor& v_next)> advance;

  torch::Tensor next(const torch::Tensor& x) const;  ///< v_next
};

/// All systems, for blocks and masses with the parameters of the flags.
///   directions: those of the planar block's friction.
std::vector<MotionSystem> motion_systems(const PhysicsFlags& flags, std::int64_t directions);

/// The factors, [k], for which the model of the system fits the motion best: by the Levenberg-Marquardt method from the
/// true constants. Who knows the system could not learn more from the same motion.
torch::Tensor fitted_factors(const MotionSystem& system, const Motion& motion);

}  // namespace lcp::training
