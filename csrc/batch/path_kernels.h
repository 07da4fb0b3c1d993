// Vector kernels for points of the central path of many small problems, one in each lane, compiled for each instruction
// set.
#pragma once

#include <cstdint>

#include "batch/kernels.h"

namespace lcp::batch::path {

/// The numbers of a workspace.
constexpr std::int64_t workspace_size(int n) { return (2 * n * n + 16 * n) * std::int64_t{8}; }

/// For n <= kLockstep. T: the type of the numbers in memory. workspace: workspace_size(n) numbers, 64-byte aligned.
/// status: 0, or kLeftOver for an element that is left to solver::CentralPath or solver::PathDerivative.
template <class T>
struct TypedKernels {
  /// The points near the solutions z_0, as solver::CentralPath::point() finds them. z, w: count x n.
  void (*find)(int n, std::int64_t count, BatchView<T> M, BatchView<T> q, BatchView<T> z_0, double kappa,
               double* workspace, double* z, double* w, std::int8_t* status);
  /// The part t_r of K' (g_z, g_w), see solver/path_derivative.h, for a = w and b = z.
  void (*adjoint)(int n, std::int64_t count, BatchView<T> M, const double* z, const double* w, const T* g_z,
                  const T* g_w, double* workspace, T* t_r, std::int8_t* status);
  /// The part dz of K (r, 0).
  void (*tangent)(int n, std::int64_t count, BatchView<T> M, const double* z, const double* w, const T* r,
                  double* workspace, T* dz, std::int8_t* status);
};

struct Kernels {
  TypedKernels<double> doubles;
  TypedKernels<float> floats;

  template <class T>
  const TypedKernels<T>& of() const {
    if constexpr (sizeof(T) == sizeof(double)) {
      return doubles;
    } else {
      return floats;
    }
  }
};

/// The kernels of the instruction set in use.
const Kernels& kernels();

}  // namespace lcp::batch::path
