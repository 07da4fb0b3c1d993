// The command line of the programs that print the tables of docs/.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>

namespace lcp::bench {

/// Calls add_flags(CLI::App&), parses the flags, and then calls print(). Returns the exit status of the process.
template <class AddFlags, class Print>
int run_study(int argc, const char* const* argv, const char* description, const AddFlags& add_flags,
              const Print& print) noexcept {
  try {
    CLI::App program(description);
    add_flags(program);
    CLI11_PARSE(program, argc, argv);
    print();
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}

}  // namespace lcp::bench
