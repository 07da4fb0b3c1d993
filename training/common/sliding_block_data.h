// The sliding block's parameters as flags, its random inputs, and its rows in a CSV file.
#pragma once

#include <torch/types.h>

#include <cstdint>

#include "common/command_line.h"
#include "common/files.h"
#include "lcp/physics/sliding_block.h"

namespace lcp::training {

struct SlidingBlockFlags {
  double mass = 1;  // kg
  double dt = 0.1;  // s
  double mu = 0.3;
  double gravity = 9.81;  // m/s^2

  void add_to(CommandLine& line);
  physics::SlidingBlock block() const { return physics::SlidingBlock::of(mass, dt, mu, gravity); }
  double max_friction() const { return mu * mass * gravity; }  ///< N
};

/// Forces [steps, trajectories], N, normal with standard deviation 1.5 mu m g, float64: a block under them sticks in
/// about four steps of ten.
torch::Tensor random_forces(std::int64_t steps, std::int64_t trajectories, const SlidingBlockFlags& flags,
                            at::Generator generator);

/// Starts [trajectories], m/s, float64, that friction brings to rest within a few steps.
torch::Tensor random_speeds(std::int64_t trajectories, const SlidingBlockFlags& flags, at::Generator generator);

/// Adds a column of x, [steps, trajectories] once it is broadcast: one trajectory after another.
void add_trajectories(Table& table, const char* name, const torch::Tensor& x, std::int64_t steps,
                      std::int64_t trajectories);

/// The columns trajectory,step,v,u,v_next,lambda_plus,lambda_minus,gamma of [steps, trajectories] tensors.
Table sliding_block_table(const torch::Tensor& v, const torch::Tensor& u, const physics::SlidingBlockStep& step);

}  // namespace lcp::training
