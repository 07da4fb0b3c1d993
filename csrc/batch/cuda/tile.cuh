// The elements that a block of threads works on, one in each thread, on their way between memory and registers.
#pragma once

#include <cstdint>

#include "batch/kernels.h"

namespace lcp::batch::cuda {

// Elements of `size` numbers. Neighbouring threads move neighbouring numbers, so that each transaction with memory is
// whole; an odd stride keeps the threads' elements in different banks.
template <int threads, int size, class T>
class Tile {
 public:
  // Reads elements first, ..., first + count - 1. A shared element is read by each thread for itself.
  __device__ void load(const BatchView<T>& view, std::int64_t first, int count) {
    if (view.shared) return;
    const T* const source = view.data + first * size;
    for (int k = threadIdx.x; k < count * size; k += threads) at(k) = source[k];
  }
  template <class L>
  __device__ void get(const BatchView<T>& view, L* x) const {
#pragma unroll
    for (int k = 0; k < size; ++k) x[k] = L(view.shared ? view.data[k] : number_[threadIdx.x * kStride + k]);
  }

  template <class L>
  __device__ void put(const L* x) {
#pragma unroll
    for (int k = 0; k < size; ++k) number_[threadIdx.x * kStride + k] = T(x[k]);
  }
  __device__ void store(T* target, std::int64_t first, int count) {
    for (int k = threadIdx.x; k < count * size; k += threads) target[first * size + k] = at(k);
  }

 private:
  static constexpr int kStride = size | 1;
  __device__ T& at(int k) { return number_[k / size * kStride + k % size]; }

  T number_[threads * kStride];
};

}  // namespace lcp::batch::cuda
