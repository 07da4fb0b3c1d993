#include "sliding_block/trajectories.h"

#include <torch/types.h>

#include <utility>

namespace lcp::training {

physics::SlidingBlock sliding_block(const PhysicsFlags& flags) {
  return physics::SlidingBlock::of(flags.mass, flags.dt, flags.mu, flags.gravity);
}

torch::Tensor random_forces(std::int64_t steps, std::int64_t trajectories, const PhysicsFlags& flags,
                            at::Generator generator) {
  return torch::randn({steps, trajectories}, std::move(generator), torch::kDouble) * 1.5 * flags.max_friction();
}

torch::Tensor random_speeds(std::int64_t trajectories, const PhysicsFlags& flags, at::Generator generator) {
  const double one_step = flags.dt * flags.mu * flags.gravity;
  return torch::randn({trajectories}, std::move(generator), torch::kDouble) * (one_step > 0 ? 3 * one_step : 1);
}

}  // namespace lcp::training
