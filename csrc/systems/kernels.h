// Kernels of the systems whose steps are formulas. A walk through time calls kernels step by step; between the calls,
// the LCPs of a step are solved or differentiated. The systems of the library have vector kernels, one trajectory in
// each lane, compiled for each instruction set. The kernels of formulas.h take one trajectory at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "batch/kernels.h"
#include "lcs/system.h"

namespace lcp::detail {
class StepFormulas;
}

namespace lcp::systems {

using batch::BatchView;

/// The start of a step of `count` trajectories. D: 2 x pairs, the directions in the plane in which the pairs' impulses
/// act, for systems that need them.
template <class T>
struct Step {
  std::int64_t count;
  int pairs;
  BatchView<T> parameters, D, x, u;
  const detail::StepFormulas* formulas;  ///< those of System
};

/// The inputs of a walk backward besides the start of the trajectories: their steps, and the gradients of x_next and z.
template <class T>
struct WalkedSteps {
  lcs::StepsView<T> x_next, z, w;
  lcs::StepsView<std::int8_t> status, states;
  lcs::StepsView<T> g_x_next, g_z;
};

/// A step backward of `count` trajectories.
template <class T>
struct BackwardStep {
  Step<T> step;
  std::int64_t number;  ///< the number of the step
  WalkedSteps<T> walked;
  BatchView<T> z_of_pairs;  ///< the z for which M z + q is differentiated, where that is smoothed; else nullptr
  BatchView<T> M;           ///< the M of a system with a constant matrix
  double *carried, *sums;   ///< for each vector: the gradient of the state, and the gradients of the parameters
  T* g_u;                   ///< count x inputs, or nullptr
  T *M_buffer, *g_z_buffer, *g_w_buffer, *t_buffer;  ///< for kWidest trajectories

  /// t = J' (g_z, g_w) of the buffers, see solver/active_set.h, for the `count` trajectories from `first` on. M: their
  /// matrices. Where derivatives are smoothed, K' of solver/path_derivative.h takes the place of J'.
  void (*solve)(void* self, std::int64_t first, std::int64_t count, BatchView<T> M);
  void* self;
};

/// A step in forward mode of `count` trajectories, whose start changes by d_parameters, d_x and d_u.
template <class T>
struct TangentStep {
  Step<T> step;
  BatchView<T> z, w;        ///< the solution of the step
  BatchView<T> z_of_pairs;  ///< as that of BackwardStep
  BatchView<std::int8_t> status, states;
  BatchView<T> d_parameters, d_x, d_u;
  T *dx_next, *dz;                                   ///< the changes of x_next and z
  T *M_buffer, *r_buffer, *none_buffer, *dz_buffer;  ///< for kWidest trajectories; none_buffer has zeros

  /// dz = J' (r, 0) of the buffers for `count` trajectories, whose states are those from `first` on. Where derivatives
  /// are smoothed, K takes the place of J'.
  void (*solve)(void* self, std::int64_t first, std::int64_t count);
  void* self;
};

/// The most trajectories in a vector.
inline constexpr std::int64_t kWidest = 8;

/// workspace: as many numbers as workspace_size says, 64-byte aligned.
template <class T>
struct StepKernels {
  /// The matrices and the vectors of the LCPs of a step; either may be nullptr. q is NaN where the state or the input
  /// is not finite.
  void (*pose)(const Step<T>& step, T* M, T* q, double* workspace);

  /// Fills the ends of the steps and the residuals; both are NaN where the status is not 0.
  ///   ahead: the results of the next step lie this many trajectories further on; 0 where there is none.
  void (*advance)(const Step<T>& step, const T* z, const T* w, const std::int8_t* status, T* x_next, T* residual,
                  std::int64_t ahead, double* workspace);

  /// Adds the gradients of x_next to the carried gradients of the ends of the steps, and replaces the sums by the
  /// gradients of the beginnings.
  void (*backward)(const BackwardStep<T>& walk, double* workspace);

  /// Fills the changes of the ends of the steps and of their z.
  void (*tangent)(const TangentStep<T>& walk, double* workspace);
};

/// A system and its kernels; csrc/systems has a header of the name.
struct System {
  std::string_view name;
  int states, inputs, parameters;
  bool has_constant_matrix;  ///< whether M depends on the parameters alone
  int width;                 ///< trajectories in a vector
  bool (*fits)(const System& system, std::int64_t pairs);
  std::size_t (*workspace_size)(const System& system, int pairs);
  StepKernels<double> doubles;
  StepKernels<float> floats;
  const detail::StepFormulas* formulas = nullptr;  ///< for a system that users have written

  template <class T>
  const StepKernels<T>& kernels() const {
    if constexpr (sizeof(T) == sizeof(double)) {
      return doubles;
    } else {
      return floats;
    }
  }
};

struct Kernels {
  System systems[5];
};

/// The kernels of the instruction set in use.
const Kernels& kernels();

/// The system of this name; nullptr where there is none.
const System* find_system(std::string_view name);

}  // namespace lcp::systems
