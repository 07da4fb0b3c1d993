// The wall time that a thread spends in the operators of lcp:: and in their backward nodes, measured by LibTorch's
// observers. These slow all operators down, so that the time of a whole training step is measured without them.
#pragma once

#include <ATen/record_function.h>

namespace lcp::bench {

/// Observes the thread that constructs it, until it is destroyed.
class InsideLcp {
 public:
  InsideLcp();
  ~InsideLcp();
  InsideLcp(const InsideLcp&) = delete;
  InsideLcp& operator=(const InsideLcp&) = delete;

  /// The time since the last call or, in the first call, since the construction.
  double seconds();

 private:
  at::CallbackHandle handle_;
};

}  // namespace lcp::bench
