// The kernels of a GPU for convex compliant contact: many small problems at once, one in each warp.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "linalg/batch_view.h"

namespace lcp::contact::cuda {

using linalg::BatchView;

/// The largest numbers of velocities and of contacts (at least 1) for which there are kernels.
inline constexpr int kMostVelocities = 32, kMostContacts = 10;

/// Status of an element that the kernel did not solve.
inline constexpr std::int8_t kLeftOver = -1;

/// A batch of the problems of contact/problem.h. All memory belongs to the GPU.
template <class T>
struct Problems {
  int n, contacts;
  BatchView<T> A, v_free, J, v_hat, R, mu;
};

/// v: count x n, y and gamma: count x 3 c, status and iterations: count.
template <class T>
struct Solutions {
  T *v, *y, *gamma;
  std::int8_t* status;
  std::int64_t* iterations;
};

/// The kernels are put into `stream` and do not wait. An element's bits depend neither on the other elements nor on its
/// place among them.

/// Solves by the method of contact/newton.h, for v alone and in at most max_iterations steps. An element that this
/// method does not solve has the status kLeftOver, and NaN. The number of these elements is added to *left, unless left
/// is nullptr. guess: [n], velocities to start from, or data = nullptr.
template <class T>
void solve(std::int64_t count, const Problems<T>& problems, BatchView<T> guess, double tolerance,
           std::int64_t max_iterations, const Solutions<T>& solutions, std::int32_t* left, cudaStream_t stream);

/// The solution v and y, or the incoming gradients of v, y and gamma.
template <class T>
struct Point {
  BatchView<T> v, y, gamma;
};

/// The results of contact/derivative.h, `count` times each.
template <class T>
struct Adjoint {
  T *l, *v_free, *v_hat, *R, *mu, *gamma;
};

/// Reads neither problems.v_free nor problems.v_hat, nor at.gamma.
template <class T>
void adjoint(std::int64_t count, const Problems<T>& problems, const Point<T>& at, const Point<T>& g,
             const Adjoint<T>& result, cudaStream_t stream);

}  // namespace lcp::contact::cuda
