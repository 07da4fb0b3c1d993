#include "run/excluded_flags.h"

#include "run/error.h"

namespace lcp::training {

void exclude_flags(const CommandLine& line, const std::vector<std::string>& flags, const std::string& other) {
  for (const std::string& flag : flags) {
    if (line.given(flag)) throw UsageError("--" + flag + " has no meaning with " + other);
  }
}

}  // namespace lcp::training
