// Walks the systems of kernels.h backward in time: the gradients of their trajectories.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "lcp/ties.h"
#include "lcs/system.h"
#include "lcs/tied_derivative.h"
#include "linalg/aligned.h"
#include "systems/simulator.h"
#include "systems/step_points.h"

namespace lcp::systems {

/// What it writes: the gradients of each trajectory, those of the parameters summed over its steps; step s of
/// trajectory b of that of u is element s * batch + b. nullptr where a gradient is not wanted.
template <class T>
struct Gradients {
  T *parameters, *x, *u;
  std::int64_t batch;
};

/// Computes what StepKernels::backward says, vector by vector, so that a tape stays in the cache. T is the type of the
/// numbers in memory, double or float. Allocates for the longest run, and as TiedDerivative does.
template <class T>
class Adjoint {
 public:
  /// system must outlive this object. kappa: > 0 where derivatives are smoothed, which have no ties.
  Adjoint(const System& system, int pairs, Ties ties, double kappa = 0);

  void run(std::int64_t count, std::int64_t steps, const Start<T>& start, const WalkedSteps<T>& walked,
           const Gradients<T>& to);

 private:
  void run_block(std::int64_t count, std::int64_t steps, const Start<T>& start, const WalkedSteps<T>& walked,
                 const Gradients<T>& to);

  const System& system_;
  int n_;
  lcs::TiedDerivative<T> derivative_;
  std::optional<StepPoints<T>> points_;  // where derivatives are smoothed
  std::vector<T> M_, M_buffer_, g_z_, g_w_, t_;
  linalg::AlignedVector<double> workspace_, carried_, sums_;
};

}  // namespace lcp::systems
