// Differentiates points of the central path near the solutions of a batch.
#pragma once

#include <cstdint>
#include <vector>

#include "batch/elements.h"
#include "batch/path_kernels.h"
#include "linalg/aligned.h"
#include "solver/central_path.h"
#include "solver/path_derivative.h"

namespace lcp::batch {

/// The linear maps K and K' of solver/path_derivative.h, where s = 0: small problems by the vector kernels, all others
/// and those that the kernels leave one by one. T is the type of the numbers in memory, double or float. Allocates for
/// the largest batch.
template <class T>
class BatchPath {
 public:
  BatchPath(int n, double kappa);

  /// Finds the points near the solutions z. M, q, z: `count` elements; M must stay alive while K is used.
  void find(std::int64_t count, BatchView<T> M, BatchView<T> q, BatchView<T> z);

  /// z of the points, 0 where there is none.
  BatchView<T> z() const { return {found_z_.data(), false}; }

  /// The part t_r of K' (g_z, g_w) of `count` points from `first` on. g_z, g_w, t_r: count x n.
  void adjoint(std::int64_t first, std::int64_t count, const T* g_z, const T* g_w, T* t_r);

  /// The part dz of K (r, 0) of `count` points from `first` on. r, dz: count x n.
  void tangent(std::int64_t first, std::int64_t count, const T* r, T* dz);

 private:
  template <class Kernel, class OneByOne>
  void for_each(std::int64_t count, const Kernel& kernel, const OneByOne& one_by_one);

  int n_;
  double kappa_;
  solver::CentralPath path_;
  solver::PathDerivative derivative_;
  ElementReader<T> M_, first_, second_;
  BatchView<T> matrices_ = {};
  std::vector<double> z_, w_, none_, x_, y_;
  const path::TypedKernels<T>* kernels_ = nullptr;
  linalg::AlignedVector<double> workspace_;
  std::vector<std::int8_t> status_;
  std::vector<T> found_z_;
};

}  // namespace lcp::batch
