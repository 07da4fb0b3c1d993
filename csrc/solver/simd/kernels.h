// What is compiled once for each instruction set of the processors, and which of them is used.
#pragma once

#include <cstdint>

namespace lcp::solver {

/// The n up to which the kernels below exist.
inline constexpr int kSmall = 4;

/// A run of problems in memory: one behind another, or one for all.
template <class T>
struct Run {
  const T* data;
  bool shared;
};

/// An element that a kernel leaves to the careful code.
inline constexpr std::int8_t kOpen = -1;

template <class T>
struct SmallKernels {
  /// Solves `count` problems of one n: z, w: count x n, status 0, or else kOpen and z, w undefined. tolerance must be
  /// at least `finest`.
  void (*solve)(std::int64_t count, Run<T> M, const T* q, double tolerance, T* z, T* w, std::int8_t* status);
  /// t = J' (g_z, g_w), see active_set.h; status as above.
  void (*adjoint)(std::int64_t count, Run<T> M, const T* z, const T* w, Run<T> g_z, Run<T> g_w, bool tied_active, T* t,
                  std::int8_t* status);
  /// t x' for each element, count x n x n; a NaN in x counts as 0.
  void (*outer)(std::int64_t count, const T* t, const T* x, T* result);
  /// The sum of those, n x n.
  void (*sum_outer)(std::int64_t count, const T* t, const T* x, double* result);
};

struct Kernels {
  const char* name;  ///< of the instruction set
  SmallKernels<double> small_double[kSmall];
  SmallKernels<float> small_float[kSmall];
  double finest_double, finest_float;

  template <class T>
  const SmallKernels<T>& small(int n) const {
    if constexpr (sizeof(T) == sizeof(double)) {
      return small_double[n - 1];
    } else {
      return small_float[n - 1];
    }
  }
};

/// Those of the best instruction set of this processor, or of the one that the environment variable TORCHLCP_ISA names:
/// "portable", "avx2" or "avx512". Throws std::invalid_argument where it names another, or one that the processor or
/// this build lacks.
const Kernels& kernels();

}  // namespace lcp::solver
