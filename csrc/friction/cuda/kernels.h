// The kernels of a GPU for contact with Coulomb friction: many small problems at once, one in each warp.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "contact/cuda/kernels.h"
#include "linalg/batch_view.h"

namespace lcp::friction::cuda {

using linalg::BatchView;

using contact::cuda::kLeftOver;
using contact::cuda::kMostContacts;
using contact::cuda::kMostVelocities;

/// A batch of the problems of friction/problem.h. All memory belongs to the GPU.
template <class T>
struct Problems {
  int n, contacts;
  BatchView<T> A, v_free, J, b, mu;
};

/// v: count x n, gamma and u: count x 3 c, status and iterations: count.
template <class T>
struct Solutions {
  T *v, *gamma, *u;
  std::int8_t* status;
  std::int64_t* iterations;
};

/// The kernels are put into `stream` and do not wait. An element's bits depend neither on the other elements nor on its
/// place among them.

/// Solves by the methods of friction/attempt.h. An element that they do not solve has the status kLeftOver, and NaN.
/// The number of these elements is added to *left, unless left is nullptr. guess: [3 c], or data = nullptr.
template <class T>
void solve(std::int64_t count, const Problems<T>& problems, BatchView<T> guess, double tolerance,
           const Solutions<T>& solutions, std::int32_t* left, cudaStream_t stream);

/// A solution, or gradients with respect to it. Neither v_free nor b of Problems is read.
template <class T>
struct Point {
  BatchView<T> v, gamma, u;
};

/// The Adjoint of friction/derivative.h for a solution `at` and the incoming gradients g. a: count x n, c: count x 3 c,
/// mu: count x c.
template <class T>
void adjoint(std::int64_t count, const Problems<T>& problems, const Point<T>& at, const Point<T>& g,
             double rank_tolerance, T* a, T* c, T* mu, cudaStream_t stream);

}  // namespace lcp::friction::cuda
