#include <c10/cuda/CUDAException.h>

#include <algorithm>
#include <iterator>
#include <type_traits>

#include "friction/cuda/adjoint.cuh"
#include "friction/cuda/kernels.h"
#include "friction/cuda/solve.cuh"

namespace lcp::friction::cuda {

template <class T>
void solve(std::int64_t count, const Problems<T>& problems, BatchView<T> guess, double tolerance,
           const Solutions<T>& solutions, std::int32_t* left, cudaStream_t stream) {
  Attempts attempts;
  std::copy(std::begin(kAttempts), std::end(kAttempts), attempts.attempt);
  linalg::cuda::with_padded_size(std::max(problems.n, 3 * problems.contacts), [&](auto size) {
    solve_in_warps<size, T><<<blocks(count, kWarps<size>), kWarp * kWarps<size>, 0, stream>>>(
        count, problems, guess, tolerance, attempts, solutions, left);
  });
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}

template <class T>
void adjoint(std::int64_t count, const Problems<T>& problems, const Point<T>& at, const Point<T>& g,
             double rank_tolerance, T* a, T* c, T* mu, cudaStream_t stream) {
  linalg::cuda::with_padded_size(std::max(problems.n, 3 * problems.contacts), [&](auto size) {
    adjoint_in_warps<size, T><<<blocks(count, kWarps<size>), kWarp * kWarps<size>, 0, stream>>>(
        count, problems, at, g, rank_tolerance, a, c, mu);
  });
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}

#define LCP_INSTANTIATE(T)                                                                                           \
  template void solve<T>(std::int64_t, const Problems<T>&, BatchView<T>, double, const Solutions<T>&, std::int32_t*, \
                         cudaStream_t);                                                                              \
  template void adjoint<T>(std::int64_t, const Problems<T>&, const Point<T>&, const Point<T>&, double, T*, T*, T*,   \
                           cudaStream_t)
LCP_INSTANTIATE(double);
LCP_INSTANTIATE(float);
#undef LCP_INSTANTIATE

}  // namespace lcp::friction::cuda
