#include "run/columns.h"

#include <string>
#include <tuple>

#include "run/error.h"

namespace lcp::training {

std::vector<double> entries_of(const torch::Tensor& x) {
  const torch::Tensor flat = x.to(torch::kDouble).contiguous();
  return {flat.const_data_ptr<double>(), flat.const_data_ptr<double>() + flat.numel()};
}

void add_trajectories(Table& table, const char* name, const torch::Tensor& x, std::int64_t steps,
                      std::int64_t trajectories) {
  table.add(name, entries_of(x.expand({steps, trajectories}).t()));
}

torch::Tensor trajectories_of(const Table& table) {
  return std::get<1>(at::_unique(torch::tensor(table["trajectory"], torch::kDouble), true, true));
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

}  // namespace lcp::training
