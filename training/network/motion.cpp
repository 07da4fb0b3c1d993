#include "network/motion.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "run/columns.h"
#include "run/error.h"
#include "run/files.h"

namespace lcp::training {
namespace {

using torch::Tensor;

constexpr const char* kNext = "v_next";

// Whether the name is `first`, or begins with it and "_".
bool is_of(const std::string& name, const std::string& first) { return name == first || name.starts_with(first + "_"); }

MotionColumns columns_of(const std::vector<std::string>& names, const std::string& file) {
  MotionColumns columns;
  for (const std::string& name : names) {
    if (is_of(name, kNext)) {
      columns.next.push_back(name);
      columns.velocities.push_back("v" + name.substr(std::string(kNext).size()));
    } else if (is_of(name, "u")) {
      columns.inputs.push_back(name);
    } else if (is_of(name, "x") || is_of(name, "y") || is_of(name, "z")) {
      columns.positions.push_back(name);
    }
  }
  if (columns.next.empty()) {
    throw UsageError(file + R"(: has no column "v_next", and none whose name begins with "v_next_")");
  }
  return columns;
}

}  // namespace

MotionFile read_motion(const std::filesystem::path& path) {
  const std::string file = path.string();
  const MotionColumns columns = columns_of(csv_columns(path), file);
  std::vector<std::string> before = columns.positions, required;
  before.insert(before.end(), columns.velocities.begin(), columns.velocities.end());
  before.insert(before.end(), columns.inputs.begin(), columns.inputs.end());
  required = before;
  required.insert(required.end(), columns.next.begin(), columns.next.end());
  const Table table = read_csv(path, required, {"trajectory"});
  const auto tensor = [&](const std::vector<std::string>& names) {
    std::vector<Tensor> all;
    all.reserve(names.size());
    for (const std::string& name : names) all.push_back(torch::tensor(table[name], torch::kDouble));
    return at::stack(all, 1);
  };
  const Motion all{tensor(before), tensor(columns.next)};
  const Tensor heldout = heldout_rows(table, file), kept = heldout.nonzero().squeeze(-1);
  return {columns, all.at(heldout.logical_not().nonzero().squeeze(-1)), all.at(kept),
          table.has("trajectory") ? trajectories_of(table).index_select(0, kept) : Tensor()};
}

}  // namespace lcp::training
