// Derivatives where M_aa is singular or near it, one problem in each warp.
#pragma once

#include "batch/cuda/warps.cuh"
#include "linalg/cuda/basis.cuh"

namespace lcp::batch::cuda {

// Each block is one warp, which takes one after another of the elements that were left.
template <int size, class T, bool transposed>
__global__ void __launch_bounds__(kWarp)
    differentiate_left(Derivative<T, transposed> derivative, double negligible, LeftElements left) {
  __shared__ WarpMemory<size> memory, operations;
  const int n = derivative.n;
  for (unsigned long long k = blockIdx.x; k < *left.count; k += gridDim.x) {
    const std::int64_t b = left.element[k];
    const bool active = lane() < n && is_active(derivative.state(b), derivative.tied_active);
    const T* const M = derivative.matrix(b);
    memory.load(n, M);
    const double right = derivative.right(b, memory, active);
    WarpBasis<size> basis(n, active, memory, operations);
    const auto entry = [&](int i, int j) { return transposed ? M[j * n + i] : M[i * n + j]; };
    basis.load(entry);
    int rank = basis.eliminate(negligible);
    double x = 0;
    if (rank == __popc(__ballot_sync(kAllLanes, active)) && basis.is_clear()) {
      x = basis.solve(active ? right : 0.0);
    } else if (rank > 0) {
      basis.load(entry);
      basis.equilibrate();
      rank = basis.eliminate(negligible);
      x = basis.solve_carefully(active ? right : 0.0, rank);
    }
    __syncwarp();
    memory.load(n, M);
    derivative.write(b, memory, active, active ? x : right);
    __syncwarp();
  }
}

}  // namespace lcp::batch::cuda
