// Errors that calls throw, as tests compare them.
#pragma once

#include <c10/util/Exception.h>

#include <string>

namespace lcp::testing {

/// The message of the c10::Error that it throws, or "no error".
template <class Call>
std::string error_of(const Call& call) {
  try {
    call();
  } catch (const c10::Error& error) {
    return error.what_without_backtrace();
  }
  return "no error";
}

}  // namespace lcp::testing
