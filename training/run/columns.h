// Tensors as columns of tables.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "run/files.h"

namespace lcp::training {

/// The entries of x, the last index running fastest.
std::vector<double> entries_of(const torch::Tensor& x);

/// Adds a column with the entries of x, one trajectory after another. x must broadcast to [steps, trajectories].
void add_trajectories(Table& table, const char* name, const torch::Tensor& x, std::int64_t steps,
                      std::int64_t trajectories);

/// The last of each kHeldOutOneIn trajectories of a file is held out; of a file without a column "trajectory", or with
/// fewer trajectories, the last of each kHeldOutOneIn rows.
constexpr std::int64_t kHeldOutOneIn = 5;

/// Which rows of the table are held out: [rows], bool. Throws a UsageError that names the file where none is.
torch::Tensor heldout_rows(const Table& table, const std::string& file);

/// The numbers of the trajectories, from 0, in the ascending order of the column "trajectory": [rows], int64.
torch::Tensor trajectories_of(const Table& table);

}  // namespace lcp::training
