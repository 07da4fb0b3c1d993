// Wall time spent inside lcp::, by LibTorch's own observers of operators and backward nodes. They slow the other
// operators down, so that a whole is timed without them.
#pragma once

#include <ATen/record_function.h>

namespace lcp::bench {

/// Observes the thread that made it, until it goes.
class InsideLcp {
 public:
  InsideLcp();
  ~InsideLcp();
  InsideLcp(const InsideLcp&) = delete;
  InsideLcp& operator=(const InsideLcp&) = delete;

  /// Since the last call, or the beginning.
  double seconds();

 private:
  at::CallbackHandle handle_;
};

}  // namespace lcp::bench
