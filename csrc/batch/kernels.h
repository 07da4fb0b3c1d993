// Vector kernels that solve many small problems at once, compiled for each instruction set.
#pragma once

#include <cstddef>
#include <cstdint>

#include "linalg/batch_view.h"

namespace lcp::batch {

using linalg::BatchView;

/// The largest n for which there are SmallKernels.
inline constexpr int kSmall = 4;

/// The largest n for which all complementary bases are enumerated, one problem in each lane.
inline constexpr int kEnumerated = 6;

/// The largest n for which problems may be pivoted in lockstep, one in each lane.
inline constexpr int kLockstep = 16;

/// The numbers that the lockstep kernels of n unknowns work with, for vectors of up to 8 lanes.
constexpr std::size_t lockstep_workspace(int n) { return static_cast<std::size_t>(2 * n * n + 11 * n + 1) * 8; }
constexpr std::size_t adjoint_workspace(int n) { return static_cast<std::size_t>(2 * n * n + 7 * n + 1) * 8; }

/// Status of an element that a kernel did not solve to full accuracy. The caller solves it with solver::Ladder, or
/// differentiates it with solver::ActiveSet.
inline constexpr std::int8_t kLeftOver = -1;

/// The results of a kernel. z, w: count x n. status: count, 0 or else kLeftOver, where z, w and the states are
/// undefined. states: count x n, the complementary basis of each solution (solver/pair_states.h), or nullptr where it
/// is not wanted. The first state of an element is kDoubtful where its basis is not certain.
template <class T>
struct Solutions {
  T *z, *w;
  std::int8_t *status, *states;
};

/// Solves `count` problems of one n. guess.data may be nullptr. tolerance must be at least TypedKernels::min_tolerance.
template <class T>
using SolveKernel = void (*)(std::int64_t count, BatchView<T> M, const T* q, BatchView<T> guess, double tolerance,
                             const Solutions<T>& solutions);

template <class T>
struct SmallKernels {
  SolveKernel<T> solve;
  /// Solves in double precision the float problems that float arithmetic does not solve. nullptr for T = double.
  SolveKernel<T> solve_as_double;
  /// t = J' (g_z, g_w), see solver/active_set.h; status as above. states: count x n.
  void (*adjoint)(std::int64_t count, BatchView<T> M, const std::int8_t* states, BatchView<T> g_z, BatchView<T> g_w,
                  bool tied_active, T* t, std::int8_t* status);
  /// t x' for each element, count x n x n. A NaN in x counts as 0.
  void (*outer)(std::int64_t count, const T* t, const T* x, T* result);
  /// The sum of t x' over the elements, n x n.
  void (*sum_outer)(std::int64_t count, const T* t, const T* x, double* result);
};

/// Kernels for n <= kLockstep, which pivot several problems at the same time.
template <class T>
struct LockstepKernels {
  /// Solves without a guess. perturbation: n, see solver/lemke.h; workspace: lockstep_workspace(n) numbers, 64-byte
  /// aligned.
  void (*solve)(int n, std::int64_t count, BatchView<T> M, const T* q, double tolerance, const double* perturbation,
                double* workspace, const Solutions<T>& solutions);
  /// t = J' (g_z, g_w) for n > kSmall. workspace: adjoint_workspace(n) numbers, 64-byte aligned.
  void (*adjoint)(int n, std::int64_t count, BatchView<T> M, const std::int8_t* states, BatchView<T> g_z,
                  BatchView<T> g_w, bool tied_active, double* workspace, T* t, std::int8_t* status);
  void (*outer)(int n, std::int64_t count, const T* t, const T* x, T* result);
  void (*sum_outer)(int n, std::int64_t count, const T* t, const T* x, double* result);
};

/// The kernels for numbers of type T.
template <class T>
struct TypedKernels {
  SmallKernels<T> small[kSmall];                   ///< for n = 1, 2, ..., kSmall
  SolveKernel<T> enumerate[kEnumerated - kSmall];  ///< for n = kSmall + 1, ..., kEnumerated
  LockstepKernels<T> lockstep;
  double min_tolerance;  ///< the smallest tolerance that the solve kernels can promise
};

struct Kernels {
  TypedKernels<double> doubles;
  TypedKernels<float> floats;
  int lockstep_up_to;  ///< above this n, solving one problem after another is faster

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

}  // namespace lcp::batch
