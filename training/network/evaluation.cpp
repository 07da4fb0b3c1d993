#include "network/evaluation.h"

#include <ATen/ATen.h>

#include <limits>
#include <string>
#include <vector>

#include "run/columns.h"

namespace lcp::training {
namespace {

using torch::Tensor;

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

}  // namespace

Tensor roll_out(const Predictor& predict, const LongMotion& motion, const MotionColumns& columns) {
  const std::int64_t v = columns.first_velocity(), u = columns.first_input();
  std::vector<Tensor> velocities;
  Tensor x = motion.x[0];
  for (std::int64_t k = 0; k < motion.x.size(0); ++k) {
    const Tensor given = motion.x[k];
    const Tensor position = k == 0 || !motion.advance ? given.slice(-1, 0, v) : motion.advance(x, velocities.back());
    x = at::cat({position, k == 0 ? given.slice(-1, v, u) : velocities.back(), given.slice(-1, u)}, -1);
    // Beyond the end of a trajectory nothing is predicted, since its inputs are NaN there.
    const Tensor known = x.isfinite().all(-1, true);
    velocities.push_back(at::where(known, predict(at::where(known, x, 0)), kNone));
  }
  return at::stack(velocities);
}

LongMotion trajectories(const Motion& motion, const Tensor& numbers) {
  const Tensor number = std::get<1>(at::_unique(numbers, /*sorted=*/true, /*return_inverse=*/true));
  return {by_trajectory(motion.x, number, kNone), by_trajectory(motion.v_next, number, kNone), nullptr};
}

double resting_fraction(const Tensor& predicted, const Tensor& truth, double tolerance) {
  const Tensor rests = (truth == 0).all(-1).nonzero().squeeze(-1);
  return (predicted.index_select(0, rests).abs() <= tolerance).all(-1).to(torch::kDouble).mean().item<double>();
}

Table rollout_table(const LongMotion& motion, const Tensor& network, const Tensor& black_box,
                    const MotionColumns& columns) {
  // A trajectory of a file may be shorter than others.
  TrajectoryTable table("rollout", motion.x.size(0), motion.x.size(1), motion.v_next.select(-1, 0).isfinite());
  table.add_steps("step");
  for (std::size_t k = 0; k < columns.velocities.size(); ++k) {
    const std::string& name = columns.velocities[k];
    const auto component = static_cast<std::int64_t>(k);
    const auto of = [&](const Tensor& x) { return x.select(-1, component); };
    table.add({name, name + "_network", name + "_black_box"},
              at::stack({of(motion.v_next), of(network), of(black_box)}, -1));
  }
  return table.take();
}

}  // namespace lcp::training
