#include "network/motion.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "run/columns.h"
#include "run/error.h"
#include "run/files.h"
#include "run/text.h"

namespace lcp::training {
namespace {

using torch::Tensor;

constexpr const char* kNext = "v_next";

// Whether the name is `first`, or begins with it and "_".
bool is_of(const std::string& name, const std::string& first) { return name == first || name.starts_with(first + "_"); }

// Whether the quantity is one after the step.
bool is_next(const std::string& name) { return name.ends_with("_next") || name.find("_next_") != std::string::npos; }

MotionColumns motion_columns(const std::vector<std::string>& names, const std::string& file) {
  MotionColumns columns;
  for (const std::string& name : names) {
    if (is_of(name, kNext)) {
      columns.next.push_back(name);
      columns.velocities.push_back("v" + name.substr(std::string(kNext).size()));
    } else if (is_next(name)) {
      continue;
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

// The trajectory of each row, from 0, [rows], int64; undefined where the file does not tell.
Tensor trajectory_of(const Table& table) {
  if (table.has("trajectory")) return trajectories_of(table);
  return table.has("step") ? torch::zeros({static_cast<std::int64_t>(table.rows())}, torch::kLong) : Tensor();
}

// The rows, sorted by trajectory and by step.
Tensor sorted_rows(const Table& table, const Tensor& trajectory, const std::string& file) {
  const auto order = [](const Tensor& x) { return x.argsort(/*stable=*/true, /*dim=*/0, /*descending=*/false); };
  if (!table.has("step")) return order(trajectory);
  const Tensor step = column_of(table, "step"), by_step = order(step);
  const Tensor rows = by_step.index_select(0, order(trajectory.index_select(0, by_step)));
  const Tensor leap = step.index_select(0, rows).diff() != 1, same = trajectory.index_select(0, rows).diff() == 0;
  const Tensor wrong = (leap & same).nonzero();
  if (wrong.numel() == 0) return rows;
  const auto value = [&](const std::string& name, std::int64_t place) {
    return short_number(table[name][static_cast<std::size_t>(rows[place].item<std::int64_t>())], 17);
  };
  const auto first = wrong[0].item<std::int64_t>();
  throw UsageError(file + ": column \"step\": " + value("step", first) + " is followed by " + value("step", first + 1) +
                   (table.has("trajectory") ? " in trajectory " + value("trajectory", first) : "") +
                   "; the steps of a trajectory must count up by 1, without gaps or repetitions");
}

// The last of kHeldOutOneIn equal parts of each trajectory: [rows], bool, for sorted rows.
Tensor ends_of(const Tensor& trajectory, const std::string& file) {
  const Tensor counts = trajectory.bincount(),
               left = counts.cumsum(0).index({trajectory}) - at::arange(trajectory.size(0));
  Tensor ends = left <= counts.index({trajectory}).floor_divide(kHeldOutOneIn);
  if (!ends.any().item<bool>()) {
    throw UsageError(file + ": needs a trajectory of at least " + std::to_string(kHeldOutOneIn) + " rows");
  }
  return ends;
}

}  // namespace

std::vector<std::string> MotionColumns::before() const {
  std::vector<std::string> all = positions;
  all.insert(all.end(), velocities.begin(), velocities.end());
  all.insert(all.end(), inputs.begin(), inputs.end());
  return all;
}

MotionFile read_motion(const std::filesystem::path& path) {
  const std::string file = path.string(), one_in = "in " + std::to_string(kHeldOutOneIn);
  const std::vector<std::string> names = csv_columns(path);
  MotionFile result;
  result.columns = motion_columns(names, file);
  const MotionColumns& columns = result.columns;
  std::vector<std::string> used = columns.before();
  used.insert(used.end(), columns.next.begin(), columns.next.end());
  const Table table = read_csv(path, used, {"trajectory", "step"});
  for (const std::string& name : names) {
    if (!table.has(name)) result.unused.push_back(name);
  }
  Motion all{columns_of(table, columns.before()), columns_of(table, columns.next)};
  Tensor trajectory = trajectory_of(table), heldout;
  if (trajectory.defined()) {
    const Tensor rows = sorted_rows(table, trajectory, file);
    all = all.at(rows);
    trajectory = trajectory.index_select(0, rows);
    const bool enough = trajectory[-1].item<std::int64_t>() + 1 >= kHeldOutOneIn;
    heldout = enough ? trajectory.remainder(kHeldOutOneIn) == kHeldOutOneIn - 1 : ends_of(trajectory, file);
    result.heldout_rule = enough ? "one trajectory " + one_in : "the last part of each trajectory, one step " + one_in;
  } else {
    heldout = heldout_rows(table, file);
    result.heldout_rule = "one row " + one_in;
  }
  const Tensor kept = heldout.nonzero().squeeze(-1);
  result.known = all.at(heldout.logical_not().nonzero().squeeze(-1));
  result.heldout = all.at(kept);
  if (trajectory.defined()) result.trajectory = trajectory.index_select(0, kept);
  return result;
}

}  // namespace lcp::training
