// A check by which a program ends calls that take long, as Ctrl-C does in Python.
#pragma once

#include <functional>

#include "lcp/export.h"

namespace lcp {

/// Sets a function that operators call while they compute, at most ten times a second, from the thread that called the
/// operator. What it throws ends the call: the other threads of the call stop within some milliseconds, the exception
/// leaves the operator, and nothing is left locked. An empty function ends the checks. The Python package sets a check
/// for signals. Throws nothing; threads may call it at any time.
///
///   lcp::set_interrupt_check([] { if (stop_requested) throw std::runtime_error("stopped"); });
LCP_API void set_interrupt_check(std::function<void()> check);

}  // namespace lcp
