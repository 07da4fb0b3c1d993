// The steps that compare_methods gives to each method.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "comparison/plan.h"
#include "run/files.h"

namespace lcp::training {

/// The data files of a seed and their names in --out: the same steps with the forces of each formulation. Of each five
/// rows the first four are for training and the fifth is held out, as the programs divide the rows of a file. Warns
/// where the steps of --data are not those of the block of the flags.
std::vector<std::pair<std::string, Table>> files_of(const ComparisonFlags& flags, std::int64_t seed);

}  // namespace lcp::training
