// The counter sees every allocator.
#include "support/count_allocations.h"

#include <gtest/gtest.h>
#include <malloc.h>

#include <Eigen/Dense>
#include <cstdlib>
#include <functional>
#include <new>

#include "linalg/aligned.h"

namespace lcp::testing {
namespace {

// Keeps the compiler from removing an allocation whose memory is not used.
template <class T>
T* used(T* p) {
  asm volatile("" : : "g"(p) : "memory");
  return p;
}

TEST(CountAllocationsTest, CountsEveryAllocator) {
  constexpr auto kAligned = std::align_val_t{64};
  const std::pair<const char*, std::function<void()>> allocators[] = {
      {"malloc", [] { std::free(used(std::malloc(8))); }},
      {"calloc", [] { std::free(used(std::calloc(1, 8))); }},
      {"realloc", [] { std::free(used(std::realloc(nullptr, 8))); }},
      {"aligned_alloc", [] { std::free(used(std::aligned_alloc(64, 64))); }},
      {"memalign", [] { std::free(used(memalign(64, 64))); }},
      {"posix_memalign",
       [] {
         void* p = nullptr;
         if (posix_memalign(&p, 64, 64) == 0) std::free(used(p));
       }},
      {"new", [] { delete used(new double); }},
      {"new[]", [] { delete[] used(new double[2]); }},
      {"nothrow new", [] { ::operator delete(used(::operator new(8, std::nothrow)), std::nothrow); }},
      {"aligned new", [] { ::operator delete(used(::operator new(64, kAligned)), kAligned); }},
      {"aligned new[]", [] { ::operator delete[](used(::operator new[](64, kAligned)), kAligned); }},
      {"AlignedVector", [] { used(linalg::AlignedVector<double>(8).data()); }},
      {"Eigen", [] { used(Eigen::VectorXd(8).data()); }},
  };
  for (const auto& [name, allocate] : allocators) {
    const long before = allocations();
    allocate();
    EXPECT_EQ(allocations() - before, 1) << name;
  }
}

}  // namespace
}  // namespace lcp::testing
