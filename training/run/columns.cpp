#include "run/columns.h"

namespace lcp::training {

std::vector<double> entries_of(const torch::Tensor& x) {
  const torch::Tensor flat = x.to(torch::kDouble).contiguous();
  return {flat.const_data_ptr<double>(), flat.const_data_ptr<double>() + flat.numel()};
}

void add_trajectories(Table& table, const char* name, const torch::Tensor& x, std::int64_t steps,
                      std::int64_t trajectories) {
  table.add(name, entries_of(x.expand({steps, trajectories}).t()));
}

}  // namespace lcp::training
