// The points of the central path near the solutions of a step.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "batch/batch_path.h"
#include "systems/kernels.h"

namespace lcp::systems {

/// Poses the LCPs of a step once more, and finds the points at which they are differentiated where derivatives are
/// smoothed. Allocates for the most trajectories.
template <class T>
class StepPoints {
 public:
  /// system must outlive this object.
  StepPoints(const System& system, int pairs, double kappa) : system_(system), n_(pairs), path_(pairs, kappa) {}

  /// z: the solutions.
  void find(const Step<T>& step, BatchView<T> z, double* workspace) {
    M_.resize(std::max<std::size_t>(M_.size(), step.count * n_ * n_));
    q_.resize(std::max<std::size_t>(q_.size(), step.count * n_));
    system_.kernels<T>().pose(step, M_.data(), q_.data(), workspace);
    path_.find(step.count, {M_.data(), false}, {q_.data(), false}, z);
  }

  batch::BatchPath<T>& path() { return path_; }

 private:
  const System& system_;
  int n_;
  batch::BatchPath<T> path_;
  std::vector<T> M_, q_;
};

}  // namespace lcp::systems
