// Other programs, run and waited for.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "run/interrupt.h"

namespace lcp::training {

/// The folder of the running program.
std::filesystem::path program_folder();

struct ProcessResult {
  int status;          ///< its exit status; 128 + signal where one ended it; -1 where it could not be run
  std::string errors;  ///< its stderr

  std::string last_error() const;  ///< the last line of it
};

/// Runs a program, of PATH unless its name has a slash, and waits for its end; its stdout is dropped. Where this
/// process ends before, by whatever cause, the program gets SIGTERM.
///   environment: "NAME=value", of what it shall have otherwise than this process.
///   interrupt: what this notes is passed on once. The program then has a process group of its own, so that Ctrl-C of a
///     terminal reaches it once as well.
ProcessResult run_process(const std::vector<std::string>& command, const std::vector<std::string>& environment = {},
                          const Interrupt* interrupt = nullptr);

}  // namespace lcp::training
