// Problems of n <= kEnumerated, one in each thread: the arithmetic of batch/kernels.cpp with vectors of one lane.
#pragma once

#include <type_traits>

#include "batch/accept.h"
#include "batch/adjoint.h"
#include "batch/cuda/kernels.h"
#include "batch/cuda/tile.cuh"
#include "batch/enumerate.h"
#include "batch/walk.h"

namespace lcp::batch::cuda {

// The threads of a block; fewer where problems are larger, since their numbers share one memory.
template <int N>
inline constexpr int kThreads = N <= kSmall ? 128 : 64;

// Adds to *left the number of the block's threads for which is_left is true.
__device__ inline void count_left(bool is_left, std::int32_t* left) {
  const int here = __syncthreads_count(is_left);
  if (threadIdx.x == 0 && here > 0) atomicAdd(left, here);
}

// Solves as L problems that are stored as T. only_left: whether to solve only those whose status is kLeftOver. left may
// be nullptr.
template <int N, class T, class L, Start start, bool only_left>
__global__ void __launch_bounds__(kThreads<N>)
    solve_in_threads(std::int64_t count, BatchView<T> M, BatchView<T> q, BatchView<T> guess, L tolerance,
                     Solutions<T> solutions, std::int32_t* left) {
  constexpr int threads = kThreads<N>;
  __shared__ Tile<threads, N * N, T> M_tile;
  __shared__ Tile<threads, N, T> q_tile, z_tile, w_tile;
  __shared__ Tile<threads, N, std::int8_t> states_tile;
  const std::int64_t first = std::int64_t{blockIdx.x} * threads;
  const int here = static_cast<int>(count - first < threads ? count - first : threads);
  bool mine = static_cast<int>(threadIdx.x) < here;
  const std::int64_t b = first + threadIdx.x;
  if constexpr (only_left) {
    mine = mine && solutions.status[b] == kLeftOver;
    if (!__syncthreads_or(mine)) return;
  }
  M_tile.load(M, first, here);
  q_tile.load(q, first, here);
  if constexpr (start == Start::kGuess) z_tile.load(guess, first, here);
  __syncthreads();
  bool solved = false;
  if (mine) {
    L M_b[N * N], q_b[N], guess_b[N], z[N], w[N], scale[N], sum[N], magnitude[N * N];
    M_tile.get(M, M_b);
    q_tile.get(q, q_b);
#pragma unroll
    for (int i = 0; i < N; ++i) q_b[i] += L(0);  // -0 becomes 0
    const L largest_q = largest_of<N, L>(q_b);
    if constexpr (start == Start::kGuess) z_tile.get(guess, guess_b);
    if constexpr (N > kSmall) {
      walk<N, start>(M_b, q_b, largest_q, guess_b, z);
    } else {
      Bases<N, L> bases;
#pragma unroll
      for (int k = 0; k < N * N; ++k) bases.M[k] = M_b[k];
      bases.set();
      enumerate<N, L, start, false>(bases, q_b, largest_q, guess_b, z);
    }
#pragma unroll
    for (int k = 0; k < N * N; ++k) magnitude[k] = stdx::abs(M_b[k]);
#pragma unroll
    for (int i = 0; i < N; ++i) z[i] = L(T(z[i]));
    solved = verify_enumerated<N, T, L>(M_b, magnitude, q_b, largest_q, tolerance, z, w, scale, sum);
    if (only_left && !solved) {
      mine = false;
    } else {
      z_tile.put(z);
      w_tile.put(w);
      if (solutions.states != nullptr) {
        L states[N];
        const auto doubtful =
            find_states<N, L, (N > kSmall)>(std::numeric_limits<T>::epsilon(), M_b, q_b, z, w, scale, states);
        states_tile.put(states);
        if (left != nullptr) solved = solved && !doubtful;  // the CPU refines z to tell
      }
      solutions.status[b] = solved ? 0 : kLeftOver;
    }
  }
  if (left != nullptr) count_left(static_cast<int>(threadIdx.x) < here && solutions.status[b] == kLeftOver, left);
  __syncthreads();
  if constexpr (only_left) {
    if (!mine) return;
    z_tile.get({nullptr, false}, solutions.z + b * N);
    w_tile.get({nullptr, false}, solutions.w + b * N);
    if (solutions.states != nullptr) states_tile.get({nullptr, false}, solutions.states + b * N);
  } else {
    z_tile.store(solutions.z, first, here);
    w_tile.store(solutions.w, first, here);
    if (solutions.states != nullptr) states_tile.store(solutions.states, first, here);
  }
}

template <int N, class T>
__global__ void __launch_bounds__(kThreads<N>)
    adjoint_in_threads(std::int64_t count, BatchView<T> M, BatchView<std::int8_t> states, BatchView<T> g_z,
                       BatchView<T> g_w, bool tied_active, T* t, LeftElements left) {
  constexpr int threads = kThreads<N>;
  __shared__ Tile<threads, N * N, T> M_tile;
  __shared__ Tile<threads, N, T> g_z_tile, g_w_tile;
  __shared__ Tile<threads, N, std::int8_t> states_tile;
  const std::int64_t first = std::int64_t{blockIdx.x} * threads;
  const int here = static_cast<int>(count - first < threads ? count - first : threads);
  M_tile.load(M, first, here);
  g_z_tile.load(g_z, first, here);
  g_w_tile.load(g_w, first, here);
  states_tile.load(states, first, here);
  __syncthreads();
  bool is_left = false;
  if (static_cast<int>(threadIdx.x) < here) {
    double M_b[N * N], states_b[N], g_z_b[N], g_w_b[N], t_b[N];
    M_tile.get(M, M_b);
    states_tile.get(states, states_b);
    g_z_tile.get(g_z, g_z_b);
    g_w_tile.get(g_w, g_w_b);
    if (states_b[0] < 0) {  // unsolved, see solver/unsolved.h
      bool is_zero = true;
#pragma unroll
      for (int i = 0; i < N; ++i) is_zero = is_zero && g_z_b[i] == 0 && g_w_b[i] == 0;
#pragma unroll
      for (int i = 0; i < N; ++i) t_b[i] = is_zero ? 0 : std::numeric_limits<double>::quiet_NaN();
    } else {
      is_left = !batch::cuda::adjoint<N, T>(M_b, states_b, g_z_b, g_w_b, tied_active, t_b);
    }
    g_z_tile.put(t_b);
  }
  if (is_left) left.element[atomicAdd(left.count, 1ULL)] = first + threadIdx.x;
  __syncthreads();
  g_z_tile.store(t, first, here);
}

template <int N, class T>
__global__ void __launch_bounds__(kThreads<N>)
    outer_in_threads(std::int64_t count, BatchView<T> t, BatchView<T> x, T* result) {
  constexpr int threads = kThreads<N>;
  __shared__ Tile<threads, N, T> t_tile, x_tile;
  __shared__ Tile<threads, N * N, T> result_tile;
  const std::int64_t first = std::int64_t{blockIdx.x} * threads;
  const int here = static_cast<int>(count - first < threads ? count - first : threads);
  t_tile.load(t, first, here);
  x_tile.load(x, first, here);
  __syncthreads();
  if (static_cast<int>(threadIdx.x) < here) {
    T t_b[N], x_b[N], product[N * N];
    t_tile.get(t, t_b);
    x_tile.get(x, x_b);
#pragma unroll
    for (int k = 0; k < N * N; ++k) product[k] = x_b[k % N] == x_b[k % N] ? t_b[k / N] * x_b[k % N] : t_b[k / N] * T(0);
    result_tile.put(product);
  }
  __syncthreads();
  result_tile.store(result, first, here);
}

}  // namespace lcp::batch::cuda
