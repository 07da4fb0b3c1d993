// Tensors as columns of tables.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <vector>

#include "run/files.h"

namespace lcp::training {

/// The entries of x, the last index running fastest.
std::vector<double> entries_of(const torch::Tensor& x);

/// Adds a column with the entries of x, one trajectory after another. x must broadcast to [steps, trajectories].
void add_trajectories(Table& table, const char* name, const torch::Tensor& x, std::int64_t steps,
                      std::int64_t trajectories);

}  // namespace lcp::training
