// Flags that have no meaning beside another.
#pragma once

#include <string>
#include <vector>

#include "run/command_line.h"

namespace lcp::training {

/// Throws a UsageError where one of the flags was given on the command line, since it has no meaning with `other`, such
/// as "--data".
void exclude_flags(const CommandLine& line, const std::vector<std::string>& flags, const std::string& other);

}  // namespace lcp::training
