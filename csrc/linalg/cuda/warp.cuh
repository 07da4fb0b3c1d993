// Communication among the lanes of a warp, and the memory that they share.
#pragma once

#include <cstdint>
#include <type_traits>

#include "simd/lanes.h"

namespace lcp::linalg::cuda {

using namespace simd::LCP_ISA;

inline constexpr int kWarp = 32;
inline constexpr unsigned kAllLanes = 0xffffffffU;

__device__ inline int lane() { return static_cast<int>(threadIdx.x) % kWarp; }

template <class V>
__device__ V from_lane(V x, int source) {
  return __shfl_sync(kAllLanes, x, source);
}
// Combines the numbers of all lanes, in an order that is always the same, so that all lanes get the same bits.
template <class Combine>
__device__ double combine_lanes(double x, const Combine& combine) {
#pragma unroll
  for (int step = kWarp / 2; step > 0; step /= 2) x = combine(x, __shfl_xor_sync(kAllLanes, x, step));
  return x;
}
__device__ inline double largest_of_lanes(double x) {
  return combine_lanes(x, [](double a, double b) { return stdx::max(a, b); });
}
__device__ inline double least_of_lanes(double x) {
  return combine_lanes(x, [](double a, double b) { return stdx::min(a, b); });
}
__device__ inline double sum_of_lanes(double x) {
  return combine_lanes(x, [](double a, double b) { return a + b; });
}
__device__ inline bool any_lane(bool x) { return __any_sync(kAllLanes, x) != 0; }
// The first lane whose x is true, or -1.
__device__ inline int first_lane(bool x) { return __ffs(static_cast<int>(__ballot_sync(kAllLanes, x))) - 1; }

// A matrix of n <= size rows, and a vector, that the lanes of a warp share.
template <int size>
struct WarpMemory {
  static constexpr int kStride = size | 1;  // odd: neither rows nor columns meet in one bank
  double matrix[size * kStride];
  double vector[kWarp];

  template <class T>
  __device__ void load(int n, const T* M) {
    for (int k = lane(); k < n * n; k += kWarp) matrix[k / n * kStride + k % n] = double(M[k]);
    __syncwarp();
  }
  __device__ double at(int i, int j) const { return matrix[i * kStride + j]; }
  __device__ double& entry(int i, int j) { return matrix[i * kStride + j]; }
  // Lane i gives number i.
  __device__ void share(double x) {
    __syncwarp();
    vector[lane()] = x;
    __syncwarp();
  }
};

// The warps of a block, each of which has `matrices` memories of its own in the 48 KiB that a block may share.
template <int size, int matrices>
inline constexpr int kWarpsWith = sizeof(WarpMemory<size>) * matrices * 4 <= 48 * 1024
                                      ? 4
                                      : static_cast<int>(48 * 1024 / (sizeof(WarpMemory<size>) * matrices));

// The blocks of `each` elements that hold `count`.
inline unsigned blocks(std::int64_t count, int each) { return static_cast<unsigned>((count + each - 1) / each); }

// Calls run(std::integral_constant<int, size>{}) for the least multiple of 8 that is not smaller than n <= kWarp.
template <int size = 8, class Run>
void with_padded_size(int n, const Run& run) {
  if (n <= size) {
    run(std::integral_constant<int, size>{});
  } else if constexpr (size < kWarp) {
    with_padded_size<size + 8>(n, run);
  }
}

}  // namespace lcp::linalg::cuda
