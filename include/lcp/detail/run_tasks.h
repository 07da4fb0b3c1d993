// Independent pieces of work on several threads.
#pragma once

#include <cstdint>
#include <functional>

#include "lcp/export.h"

namespace lcp::detail {

/// Calls work(0), ..., work(count - 1), each once, on this thread and, beside it, threads - 1 others; returns when all
/// are done. Each call has gradients switched on and one thread for its tensor operations, so that its results do not
/// depend on `threads`. Where a call throws, or the check of lcp/interrupt.h does, the others end, too, at the next
/// place where an operator can be interrupted, and the first exception is thrown again.
LCP_API void run_tasks(std::int64_t count, std::int64_t threads, const std::function<void(std::int64_t k)>& work);

}  // namespace lcp::detail
