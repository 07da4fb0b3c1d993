// Loops that threads share, and that an interrupt of the call ends.
#pragma once

#include <ATen/Parallel.h>

#include <cstdint>

#include "interrupt/checkpoint.h"

namespace lcp::ops {

/// Like at::parallel_for, but interrupt::checkpoint can end the work of all threads. Where one thread throws, the
/// others stop.
template <class Work>
void parallel_for(std::int64_t begin, std::int64_t end, std::int64_t grain, const Work& work) {
  if (begin >= end) return;
  if (interrupt::Call::is_within()) return at::parallel_for(begin, end, grain, work);
  interrupt::Call call(end - begin);
  at::parallel_for(begin, end, grain,
                   [&](std::int64_t first, std::int64_t last) { call.run(last - first, [&] { work(first, last); }); });
  call.finish();
}

}  // namespace lcp::ops
