#include "support/count_allocations.h"

#include <atomic>
#include <cstddef>

namespace {

std::atomic<long> count = 0;

}  // namespace

extern "C" {

void* __libc_malloc(std::size_t size);

void* malloc(std::size_t size) {
  ++count;
  return __libc_malloc(size);
}
}

long lcp::testing::allocations() { return count; }
