// Runs other programs and waits for them.
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
/// process ends first, for whatever reason, the program gets SIGTERM. It is no part of the group of this process
/// (process_group.h).
///   environment: "NAME=value", variables that replace those of this process or are added to them.
///   interrupt: a signal that it receives is passed on to the program once. The program then has a process group of its
///     own, so that Ctrl-C of a terminal reaches it once as well.
ProcessResult run_process(const std::vector<std::string>& command, const std::vector<std::string>& environment = {},
                          const Interrupt* interrupt = nullptr);

}  // namespace lcp::training
