#include "sliding_block/trajectories.h"

#include <torch/types.h>

#include <utility>

#include "run/columns.h"

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

Table sliding_block_table(const torch::Tensor& v, const torch::Tensor& u, const physics::SlidingBlockStep& step) {
  const std::int64_t steps = v.size(0);
  const std::int64_t trajectories = v.size(1);
  Table table;
  const auto add = [&](const char* name, const torch::Tensor& x) {
    add_trajectories(table, name, x, steps, trajectories);
  };
  add("trajectory", torch::arange(trajectories, torch::kDouble));
  add("step", torch::arange(steps, torch::kDouble).unsqueeze(-1));
  add("v", v);
  add("u", u);
  add("v_next", step.v_next);
  add("lambda_plus", step.lambda_plus);
  add("lambda_minus", step.lambda_minus);
  add("gamma", step.gamma);
  return table;
}

}  // namespace lcp::training
