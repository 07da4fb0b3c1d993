// Links allocators that count. Every operator new, aligned or not, and Eigen's allocation call one of them.
#pragma once

namespace lcp::testing {

/// Calls of malloc, calloc, realloc, aligned_alloc, memalign and posix_memalign by this program so far.
long allocations();

}  // namespace lcp::testing
