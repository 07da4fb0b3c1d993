// The length of randomised searches for problems that break the solver.
#pragma once

#include <cstdlib>

namespace lcp::testing {

/// Whether the environment asks for the long versions of tests, by TORCHLCP_LONG_TESTS.
inline bool long_tests() {
  const char* const value = std::getenv("TORCHLCP_LONG_TESTS");
  return value != nullptr && *value != '\0';
}

/// `count` in long tests, otherwise a twentieth of it.
inline int effort(int count) { return long_tests() ? count : count / 20; }

}  // namespace lcp::testing
