#include <c10/cuda/CUDAException.h>

#include <type_traits>

#include "batch/cuda/kernels.h"
#include "batch/cuda/singular.cuh"
#include "batch/cuda/threads.cuh"
#include "batch/cuda/warps.cuh"
#include "solver/singular.h"

namespace lcp::batch::cuda {
namespace {

// Calls run(std::integral_constant<int, n>) for 1 <= n <= kEnumerated.
template <int N = 1, class Run>
void with_size(int n, const Run& run) {
  if (n == N) {
    run(std::integral_constant<int, N>{});
  } else if constexpr (N < kEnumerated) {
    with_size<N + 1>(n, run);
  }
}

template <int N, class T, Start start>
void solve_small(std::int64_t count, BatchView<T> M, BatchView<T> q, BatchView<T> guess, double tolerance,
                 const Solutions<T>& solutions, std::int32_t* left, cudaStream_t stream) {
  using L = std::conditional_t<(N > kSmall), double, T>;
  constexpr bool twice = sizeof(L) < sizeof(double);
  const unsigned grid = blocks(count, kThreads<N>);
  solve_in_threads<N, T, L, start, false><<<grid, kThreads<N>, 0, stream>>>(
      count, M, q, guess, static_cast<L>(tolerance), solutions, twice ? nullptr : left);
  if constexpr (twice) {
    solve_in_threads<N, T, double, start, true>
        <<<grid, kThreads<N>, 0, stream>>>(count, M, q, guess, tolerance, solutions, left);
  }
}

// Differentiates the elements that a first kernel left, by as many warps as the largest GPUs run at once.
template <int size, class T, bool transposed>
void differentiate_rest(std::int64_t count, const Derivative<T, transposed>& derivative, const LeftElements& left,
                        cudaStream_t stream) {
  constexpr std::int64_t most = 2048;
  const double negligible = solver::negligible_pivot(sizeof(T) == sizeof(float));
  differentiate_left<size, T, transposed>
      <<<static_cast<unsigned>(count < most ? count : most), kWarp, 0, stream>>>(derivative, negligible, left);
}

template <class T, bool transposed>
void differentiate(std::int64_t count, const Derivative<T, transposed>& derivative, const LeftElements& left,
                   cudaStream_t stream) {
  with_padded_size(derivative.n, [&](auto size) {
    differentiate_in_warps<size, T, transposed>
        <<<blocks(count, kWarps), kWarp * kWarps, 0, stream>>>(count, derivative, left);
    differentiate_rest<size>(count, derivative, left, stream);
  });
}

}  // namespace

template <class T>
void solve(int n, std::int64_t count, BatchView<T> M, BatchView<T> q, BatchView<T> guess, double tolerance,
           const Solutions<T>& solutions, std::int32_t* left, cudaStream_t stream) {
  if (n <= kEnumerated) {
    with_size(n, [&](auto N) {
      if (guess.data == nullptr) {
        solve_small<N, T, Start::kNothing>(count, M, q, guess, tolerance, solutions, left, stream);
      } else {
        solve_small<N, T, Start::kGuess>(count, M, q, guess, tolerance, solutions, left, stream);
      }
    });
  } else {
    Perturbation perturbation = {};
    solver::perturb(0, n, perturbation.of_row);
    with_padded_size(n, [&](auto size) {
      solve_in_warps<size, T><<<blocks(count, kWarps), kWarp * kWarps, 0, stream>>>(n, count, M, q, tolerance,
                                                                                    perturbation, solutions, left);
    });
  }
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}

template <class T>
double min_tolerance() {
  return 2 * kNearRoundOff<T>;
}

template <class T>
void adjoint(int n, std::int64_t count, BatchView<T> M, BatchView<std::int8_t> states, BatchView<T> g_z,
             BatchView<T> g_w, bool tied_active, T* t, const LeftElements& left, cudaStream_t stream) {
  const Derivative<T, true> derivative = {n, M, states, g_z, g_w, tied_active, t, nullptr};
  if (n <= kSmall) {
    with_size(n, [&](auto N) {
      if constexpr (N <= kSmall) {
        adjoint_in_threads<N, T>
            <<<blocks(count, kThreads<N>), kThreads<N>, 0, stream>>>(count, M, states, g_z, g_w, tied_active, t, left);
      }
    });
    differentiate_rest<8>(count, derivative, left, stream);
  } else {
    differentiate(count, derivative, left, stream);
  }
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}

template <class T>
void tangent(int n, std::int64_t count, BatchView<T> M, BatchView<std::int8_t> states, BatchView<T> r, bool tied_active,
             T* dz, T* dw, const LeftElements& left, cudaStream_t stream) {
  differentiate(count, Derivative<T, false>{n, M, states, r, {nullptr, true}, tied_active, dz, dw}, left, stream);
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}

template <class T>
void outer(int n, std::int64_t count, BatchView<T> t, BatchView<T> x, T* result, cudaStream_t stream) {
  with_size(n, [&](auto N) {
    outer_in_threads<N, T><<<blocks(count, kThreads<N>), kThreads<N>, 0, stream>>>(count, t, x, result);
  });
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}

#define LCP_INSTANTIATE(T)                                                                                            \
  template void solve<T>(int, std::int64_t, BatchView<T>, BatchView<T>, BatchView<T>, double, const Solutions<T>&,    \
                         std::int32_t*, cudaStream_t);                                                                \
  template double min_tolerance<T>();                                                                                 \
  template void adjoint<T>(int, std::int64_t, BatchView<T>, BatchView<std::int8_t>, BatchView<T>, BatchView<T>, bool, \
                           T*, const LeftElements&, cudaStream_t);                                                    \
  template void tangent<T>(int, std::int64_t, BatchView<T>, BatchView<std::int8_t>, BatchView<T>, bool, T*, T*,       \
                           const LeftElements&, cudaStream_t);                                                        \
  template void outer<T>(int, std::int64_t, BatchView<T>, BatchView<T>, T*, cudaStream_t)
LCP_INSTANTIATE(double);
LCP_INSTANTIATE(float);
#undef LCP_INSTANTIATE

}  // namespace lcp::batch::cuda
