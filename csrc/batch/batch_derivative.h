// Differentiates the solutions of a batch: adjoints of small problems by the vector kernels; tangents, and all adjoints
// that the kernels leave, by solver::ActiveSet.
#pragma once

#include <cstdint>
#include <vector>

#include "batch/elements.h"
#include "batch/kernels.h"
#include "linalg/aligned.h"
#include "solver/active_set.h"

namespace lcp::batch {

/// The linear maps J and J' of solver/active_set.h. T is the type of the numbers in memory, double or float.
template <class T>
class BatchDerivative {
 public:
  /// tied_active: whether tied pairs count as w_i = 0 rather than z_i = 0.
  BatchDerivative(int n, bool tied_active);

  /// t = J' (g_z, g_w). M, g_z, g_w: `count` elements; states, t: count x n.
  void adjoint(std::int64_t count, BatchView<T> M, const std::int8_t* states, BatchView<T> g_z, BatchView<T> g_w, T* t);

  /// (dz, dw) = J r. M, r: `count` elements; states, dz, dw: count x n.
  void tangent(std::int64_t count, BatchView<T> M, const std::int8_t* states, BatchView<T> r, T* dz, T* dw);

 private:
  int n_;
  bool tied_active_;
  const SmallKernels<T>* small_ = nullptr;
  const LockstepKernels<T>* lockstep_ = nullptr;
  linalg::AlignedVector<double> workspace_;
  solver::ActiveSet active_set_;
  ElementReader<T> M_, first_, second_;
  std::vector<double> x_, y_;
  std::vector<std::int8_t> status_;
};

}  // namespace lcp::batch
