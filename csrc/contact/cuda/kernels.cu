#include <c10/cuda/CUDAException.h>

#include <algorithm>

#include "contact/cuda/adjoint.cuh"
#include "contact/cuda/kernels.h"
#include "contact/cuda/newton.cuh"

namespace lcp::contact::cuda {

template <class T>
void solve(std::int64_t count, const Problems<T>& problems, BatchView<T> guess, double tolerance,
           std::int64_t max_iterations, const Solutions<T>& solutions, std::int32_t* left, cudaStream_t stream) {
  with_padded_size(problems.n, [&](auto size) {
    solve_in_warps<size, T><<<blocks(count, kWarps<size>), kWarp * kWarps<size>, 0, stream>>>(
        count, problems, guess, tolerance, max_iterations, solutions, left);
  });
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}

template <class T>
void adjoint(std::int64_t count, const Problems<T>& problems, const Point<T>& at, const Point<T>& g,
             const Adjoint<T>& result, cudaStream_t stream) {
  with_padded_size(problems.n, [&](auto size) {
    adjoint_in_warps<size, T>
        <<<blocks(count, kWarps<size>), kWarp * kWarps<size>, 0, stream>>>(count, problems, at, g, result);
  });
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}

#define LCP_INSTANTIATE(T)                                                                                          \
  template void solve<T>(std::int64_t, const Problems<T>&, BatchView<T>, double, std::int64_t, const Solutions<T>&, \
                         std::int32_t*, cudaStream_t);                                                              \
  template void adjoint<T>(std::int64_t, const Problems<T>&, const Point<T>&, const Point<T>&, const Adjoint<T>&,   \
                           cudaStream_t)
LCP_INSTANTIATE(double);
LCP_INSTANTIATE(float);
#undef LCP_INSTANTIATE

}  // namespace lcp::contact::cuda
