// The steps that compare_methods gives to each method.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "comparison/plan.h"
#include "run/files.h"

namespace lcp::training {

/// A seed's files, by their names in --out: the same steps with the forces of each formulation. Four steps to learn
/// from, one to hold out, and so on, as programs divide the rows of a file. Warns where those of --data are not of the
/// flags' block.
std::vector<std::pair<std::string, Table>> files_of(const ComparisonFlags& flags, std::int64_t seed);

}  // namespace lcp::training
