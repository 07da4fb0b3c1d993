// Tensors as columns of tables, and back.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "run/files.h"

namespace lcp::training {

/// The entries of x, the last index running fastest.
std::vector<double> entries_of(const torch::Tensor& x);

/// The columns of these names, [rows, names], float64; one column, [rows].
torch::Tensor columns_of(const Table& table, const std::vector<std::string>& names);
torch::Tensor column_of(const Table& table, const std::string& name);

/// A table with a row for each step of each trajectory, one trajectory after another.
class TrajectoryTable {
 public:
  /// Its first column, `number`, has the number of the trajectory, from 0.
  ///   seen: [steps, trajectories], bool: the steps that get a row; undefined: all.
  TrajectoryTable(const char* number, std::int64_t steps, std::int64_t trajectories, torch::Tensor seen = {});

  /// Adds a column. x: [steps, trajectories], or what broadcasts to it.
  TrajectoryTable& add(const char* name, const torch::Tensor& x);

  /// Adds a column for each name. x: [..., names], where [...] is as above.
  TrajectoryTable& add(const std::vector<std::string>& names, const torch::Tensor& x);

  /// Adds a column with unit times the numbers of the steps: first, first + 1, ...
  TrajectoryTable& add_steps(const char* name, std::int64_t first = 0, double unit = 1);

  Table take() { return std::move(table_); }

 private:
  Table table_;
  std::int64_t steps_, trajectories_;
  torch::Tensor seen_;
};

/// The last of each kHeldOutOneIn trajectories of a file is held out; of a file without a column "trajectory", or with
/// fewer trajectories, the last of each kHeldOutOneIn rows.
constexpr std::int64_t kHeldOutOneIn = 5;

/// Which rows of the table are held out: [rows], bool. Throws a UsageError that names the file where none is.
torch::Tensor heldout_rows(const Table& table, const std::string& file);

/// The numbers of the trajectories, from 0, in the ascending order of the column "trajectory": [rows], int64.
torch::Tensor trajectories_of(const Table& table);

/// The rows of x, [rows, ...], of each trajectory, in their order: [steps, trajectories, ...], with `filling` where a
/// shorter trajectory has ended.
///   trajectory: [rows], int64, the number of that of each row.
torch::Tensor by_trajectory(const torch::Tensor& x, const torch::Tensor& trajectory, double filling = 0);

}  // namespace lcp::training
