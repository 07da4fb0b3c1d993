// Random inputs of a sliding block.
#pragma once

#include <torch/types.h>

#include <cstdint>

#include "lcp/physics/sliding_block.h"
#include "run/command_line.h"

namespace lcp::training {

/// The block of the flags, for both float32 and float64.
physics::SlidingBlock sliding_block(const PhysicsFlags& flags);

/// Forces [steps, trajectories], N, normal with standard deviation 1.5 mu m g, float64: a block under them sticks in
/// about four steps of ten.
torch::Tensor random_forces(std::int64_t steps, std::int64_t trajectories, const PhysicsFlags& flags,
                            at::Generator generator);

/// Initial velocities [trajectories], m/s, float64, which friction stops within a few steps.
torch::Tensor random_speeds(std::int64_t trajectories, const PhysicsFlags& flags, at::Generator generator);

}  // namespace lcp::training
