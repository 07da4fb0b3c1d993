// Walks the systems of kernels.h in forward mode: the changes of their trajectories.
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

/// The steps of trajectories, as a walk forward has written them.
template <class T>
struct Steps {
  lcs::StepsView<T> x_next, z, w;
  lcs::StepsView<std::int8_t> status, states;
};

/// The changes of x_next and z. Step s of trajectory b is element s * batch + b.
template <class T>
struct Changes {
  T *x_next, *z;
  std::int64_t batch;
};

/// Computes what StepKernels::tangent says, vector by vector. T is the type of the numbers in memory, double or float.
/// Allocates in the constructor, and as TiedDerivative does.
template <class T>
class Tangents {
 public:
  /// system must outlive this object. kappa: > 0 where derivatives are smoothed, which have no ties.
  Tangents(const System& system, int pairs, Ties ties, double kappa = 0);

  /// change: the changes of `start`; its D is not read.
  void run(std::int64_t count, std::int64_t steps, const Start<T>& start, const Steps<T>& walked,
           const Start<T>& change, const Changes<T>& to);

 private:
  const System& system_;
  int n_;
  lcs::TiedDerivative<T> derivative_;
  std::optional<StepPoints<T>> points_;  // where derivatives are smoothed
  std::vector<T> M_, r_, none_, dz_;
  linalg::AlignedVector<double> workspace_;
};

}  // namespace lcp::systems
