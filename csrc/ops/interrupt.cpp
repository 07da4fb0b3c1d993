#include "lcp/interrupt.h"

#include <ATen/core/dispatch/Dispatcher.h>

#include <utility>

#include "interrupt/checkpoint.h"
#include "ops/registration.h"

namespace lcp {

void set_interrupt_check(std::function<void()> check) { interrupt::set_check(std::move(check)); }

namespace ops {
namespace {

// The check for signals, which Python implements as an operator, since the library does not depend on Python.

void check_signals() {
  static const auto check = c10::Dispatcher::singleton().findSchemaOrThrow("lcp::_check_signals", "").typed<void()>();
  // The call goes straight to Python's function, past all modes and transforms that are active.
  check.redispatch(c10::DispatchKeySet(c10::DispatchKey::CPU));
}

void use_signal_check() { set_interrupt_check(check_signals); }

LCP_LIBRARY_FRAGMENT(library) {
  library.def("_check_signals() -> ()");
  library.def("_use_signal_check() -> ()", TORCH_FN(use_signal_check));
}

}  // namespace
}  // namespace ops
}  // namespace lcp
