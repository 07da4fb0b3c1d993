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
  const Tensor each = std::get<0>(at::_unique(numbers, true));
  const std::int64_t count = each.size(0);
  std::vector<Tensor> rows;
  std::int64_t steps = 0;
  for (std::int64_t k = 0; k < count; ++k) {
    rows.push_back((numbers == each[k]).nonzero().squeeze(-1));
    steps = std::max(steps, rows.back().size(0));
  }
  LongMotion all{at::full({steps, count, motion.x.size(1)}, kNone, torch::kDouble),
                 at::full({steps, count, motion.v_next.size(1)}, kNone, torch::kDouble), nullptr};
  for (std::int64_t k = 0; k < count; ++k) {
    const Tensor& own = rows[static_cast<std::size_t>(k)];
    all.x.select(1, k).slice(0, 0, own.size(0)).copy_(motion.x.index_select(0, own));
    all.v_next.select(1, k).slice(0, 0, own.size(0)).copy_(motion.v_next.index_select(0, own));
  }
  return all;
}

double resting_fraction(const Tensor& predicted, const Tensor& truth, double tolerance) {
  const Tensor rests = (truth == 0).all(-1).nonzero().squeeze(-1);
  return (predicted.index_select(0, rests).abs() <= tolerance).all(-1).to(torch::kDouble).mean().item<double>();
}

Table rollout_table(const LongMotion& motion, const Tensor& network, const Tensor& black_box,
                    const MotionColumns& columns) {
  const std::int64_t steps = motion.x.size(0), count = motion.x.size(1);
  // A trajectory of a file may be shorter than others.
  const Tensor kept = motion.v_next.select(-1, 0).t().flatten().isfinite().nonzero().squeeze(-1);
  Table table;
  const auto add = [&](const std::string& name, const Tensor& x) {
    table.add(name, entries_of(x.expand({steps, count}).t().flatten().index_select(0, kept)));
  };
  add("rollout", at::arange(count, torch::kDouble));
  add("step", at::arange(steps, torch::kDouble).unsqueeze(-1));
  for (std::size_t k = 0; k < columns.velocities.size(); ++k) {
    const std::string& name = columns.velocities[k];
    const auto component = static_cast<std::int64_t>(k);
    add(name, motion.v_next.select(-1, component));
    add(name + "_network", network.select(-1, component));
    add(name + "_black_box", black_box.select(-1, component));
  }
  return table;
}

}  // namespace lcp::training
