#include "run/columns.h"

#include <string>
#include <tuple>

#include "run/error.h"

namespace lcp::training {

std::vector<double> entries_of(const torch::Tensor& x) {
  const torch::Tensor flat = x.to(torch::kDouble).contiguous();
  return {flat.const_data_ptr<double>(), flat.const_data_ptr<double>() + flat.numel()};
}

torch::Tensor columns_of(const Table& table, const std::vector<std::string>& names) {
  std::vector<torch::Tensor> columns;
  for (const std::string& name : names) columns.push_back(column_of(table, name));
  return torch::stack(columns, -1);
}

torch::Tensor column_of(const Table& table, const std::string& name) {
  return torch::tensor(table[name], torch::kDouble);
}

TrajectoryTable::TrajectoryTable(const char* number, std::int64_t steps, std::int64_t trajectories, torch::Tensor seen)
    : steps_(steps), trajectories_(trajectories), seen_(std::move(seen)) {
  add(number, torch::arange(trajectories, torch::kDouble));
}

TrajectoryTable& TrajectoryTable::add(const char* name, const torch::Tensor& x) {
  const torch::Tensor rows = x.expand({steps_, trajectories_}).t();
  table_.add(name, entries_of(seen_.defined() ? rows.masked_select(seen_.t()) : rows));
  return *this;
}

TrajectoryTable& TrajectoryTable::add(const std::vector<std::string>& names, const torch::Tensor& x) {
  for (std::size_t k = 0; k < names.size(); ++k) add(names[k].c_str(), x.select(-1, static_cast<std::int64_t>(k)));
  return *this;
}

TrajectoryTable& TrajectoryTable::add_steps(const char* name, std::int64_t first, double unit) {
  return add(name, unit * torch::arange(first, first + steps_, torch::kDouble).unsqueeze(-1));
}

torch::Tensor trajectories_of(const Table& table) {
  return std::get<1>(at::_unique(column_of(table, "trajectory"), true, true));
}

torch::Tensor heldout_rows(const Table& table, const std::string& file) {
  const auto count = static_cast<std::int64_t>(table.rows());
  torch::Tensor group = at::arange(count);
  if (table.has("trajectory")) {
    const torch::Tensor trajectory = trajectories_of(table);
    if (trajectory.max().item<std::int64_t>() + 1 >= kHeldOutOneIn) group = trajectory;
  }
  torch::Tensor heldout = group.remainder(kHeldOutOneIn) == kHeldOutOneIn - 1;
  if (!heldout.any().item<bool>()) {
    throw UsageError(file + ": needs at least " + std::to_string(kHeldOutOneIn) + " rows; has " +
                     std::to_string(count));
  }
  return heldout;
}

torch::Tensor by_trajectory(const torch::Tensor& x, const torch::Tensor& trajectory, double filling) {
  std::vector<torch::Tensor> each;
  for (std::int64_t k = 0; k <= trajectory.max().item<std::int64_t>(); ++k) each.push_back(x.index({trajectory == k}));
  return at::pad_sequence(each, /*batch_first=*/false, filling).contiguous();
}

}  // namespace lcp::training
