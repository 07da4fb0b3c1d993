// Outer products of the vectors of a batch by the vector kernels.
#pragma once

#include <cstdint>

#include "batch/kernels.h"

namespace lcp::batch {

/// Whether there are kernels for vectors of n numbers.
constexpr bool has_outer_products(std::int64_t n) { return n >= 1 && n <= kLockstep; }

/// t x' for each of `count` elements. t, x: count x n; result: count x n x n. A NaN in x counts as 0.
template <class T>
void outer_products(int n, std::int64_t count, const T* t, const T* x, T* result) {
  if (n <= kSmall) {
    kernels().of<T>().small[n - 1].outer(count, t, x, result);
  } else {
    kernels().of<T>().lockstep.outer(n, count, t, x, result);
  }
}

/// The sum of t x' over the elements, in their order in memory, n x n.
template <class T>
void sum_outer_products(int n, std::int64_t count, const T* t, const T* x, double* result) {
  if (n <= kSmall) {
    kernels().of<T>().small[n - 1].sum_outer(count, t, x, result);
  } else {
    kernels().of<T>().lockstep.sum_outer(n, count, t, x, result);
  }
}

}  // namespace lcp::batch
