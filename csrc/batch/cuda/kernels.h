// The batch kernels of a GPU: solutions, adjoints and tangents of many small problems at once.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "batch/kernels.h"

namespace lcp::batch::cuda {

/// The largest n for which there are kernels. Small problems are solved one in each thread, larger ones one in each
/// warp.
inline constexpr int kLargest = 32;

/// The kernels below are put into `stream` and do not wait. All memory belongs to the GPU. An element's bits depend
/// neither on the other elements nor on its place among them.

/// Fills z, w, status and states as batch/kernels.h describes. The status is kLeftOver where the problem is not solved
/// to full accuracy or, unless left is nullptr, where its states are doubtful. The number of these elements is added to
/// *left. guess.data may be nullptr; above kEnumerated there is no guess. tolerance must be at least min_tolerance<T>.
template <class T>
void solve(int n, std::int64_t count, BatchView<T> M, BatchView<T> q, BatchView<T> guess, double tolerance,
           const Solutions<T>& solutions, std::int32_t* left, cudaStream_t stream);

/// The smallest tolerance that `solve` can promise.
template <class T>
double min_tolerance();

/// The elements that a first kernel leaves to a second one. element: memory for `count` numbers for a batch of `count`
/// elements. count: how many of these numbers are set, 0 at first.
struct LeftElements {
  std::int64_t* element;
  unsigned long long* count;
};

/// t = J' (g_z, g_w), see solver/active_set.h, also where M_aa is singular. states, t: count x n.
template <class T>
void adjoint(int n, std::int64_t count, BatchView<T> M, BatchView<std::int8_t> states, BatchView<T> g_z,
             BatchView<T> g_w, bool tied_active, T* t, const LeftElements& left, cudaStream_t stream);

/// (dz, dw) = J r. states, dz, dw: count x n.
template <class T>
void tangent(int n, std::int64_t count, BatchView<T> M, BatchView<std::int8_t> states, BatchView<T> r, bool tied_active,
             T* dz, T* dw, const LeftElements& left, cudaStream_t stream);

/// t x' for each element, n <= kEnumerated. result: count x n x n. A NaN in x counts as 0.
template <class T>
void outer(int n, std::int64_t count, BatchView<T> t, BatchView<T> x, T* result, cudaStream_t stream);

}  // namespace lcp::batch::cuda
