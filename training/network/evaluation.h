// Measures how well a learned network, and a black box, predict motion.
#pragma once

#include <torch/types.h>

#include <functional>

#include "network/motion.h"
#include "run/files.h"

namespace lcp::training {

/// v_next [n, d] for x [n, p], see Motion.
using Predictor = std::function<torch::Tensor(const torch::Tensor& x)>;

/// Motion for many steps, [steps, trajectories, ...]; a step that is not there is NaN.
struct LongMotion {
  torch::Tensor x;       ///< [steps, trajectories, p]: positions, velocities and inputs before each step
  torch::Tensor v_next;  ///< [steps, trajectories, d]
  /// Positions after a step, from x and v_next; absent: those of `x`, which then were measured.
  std::function<torch::Tensor(const torch::Tensor& x, const torch::Tensor& v_next)> advance;
};

/// The velocities that the predictor gives from the first state of each trajectory alone: [steps, trajectories, d].
torch::Tensor roll_out(const Predictor& predict, const LongMotion& motion, const MotionColumns& columns);

/// The motion as trajectories: `numbers` has that of each row, and the rows of a trajectory are consecutive steps.
LongMotion trajectories(const Motion& motion, const torch::Tensor& numbers);

/// The share of the samples that rest exactly after the step, v_next = 0, and of which that is predicted; NaN where
/// none rests.
double resting_fraction(const torch::Tensor& predicted, const torch::Tensor& truth, double tolerance);

/// Columns rollout,step and, for each velocity, its true value, that of the network and that of the black box.
Table rollout_table(const LongMotion& motion, const torch::Tensor& network, const torch::Tensor& black_box,
                    const MotionColumns& columns);

}  // namespace lcp::training
