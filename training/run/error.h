// UsageError, a mistake of the user such as a bad flag, file or column, and how a program reports it.
#pragma once

#include <functional>
#include <stdexcept>
#include <string>

#include "run/process_group.h"

namespace lcp::training {

class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Runs a program's body and ends the process with the exit status that it returns. What the body throws becomes one
/// line on stderr: exit status 2 for a UsageError, 1 else. If what it printed cannot be written to stdout, as on a full
/// disk, that is such a line and exit status 2 as well. A file that would exceed the process' file size limit is a
/// UsageError and does not end the process by SIGXFSZ. Objects with static storage are not destroyed, since LibTorch's
/// destructors unregister its operators one by one, which takes as long as loading it.
///
/// Under torchrun the body runs in all processes, or in the first alone where it does not divide its work. Only the
/// first prints; what any of them throws ends all of them, and is reported once.
[[noreturn]] void run_program(const std::string& program, int (*body)(int argc, const char* const* argv), int argc,
                              const char* const* argv, Processes use = Processes::kFirst);

}  // namespace lcp::training
