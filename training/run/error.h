// A mistake of the caller's: a bad flag, file or column.
#pragma once

#include <functional>
#include <stdexcept>
#include <string>

namespace lcp::training {

class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Runs a program's body and turns what it throws into one line on stderr: exit status 2 for a UsageError, 1 else. A
/// file that reaches the process' limit of size is a UsageError, not a signal.
int guarded(const std::string& program, const std::function<int()>& body);

}  // namespace lcp::training
