// Walks the systems of kernels.h forward in time.
#pragma once

#include <cstdint>
#include <vector>

#include "batch/batch_solver.h"
#include "lcs/system.h"
#include "linalg/aligned.h"
#include "systems/kernels.h"

namespace lcp::systems {

/// What trajectories depend on.
template <class T>
struct Start {
  BatchView<T> parameters, D, x;
  lcs::StepsView<T> u;

  /// From trajectory b on.
  Start from(std::int64_t b, const System& system, int pairs) const;
};

/// T is the type of the numbers in memory, double or float; formulas are computed in double precision. A trajectory's
/// result depends neither on the other trajectories nor on its place among them. Allocates for the longest run, and as
/// BatchSolver does.
template <class T>
class Simulator {
 public:
  /// system must outlive this object.
  Simulator(const System& system, int pairs, const solver::Settings& settings);

  /// Steps `count` trajectories.
  void run(std::int64_t count, std::int64_t steps, const Start<T>& start, const lcs::Path<T>& to);

 private:
  void run_block(std::int64_t count, std::int64_t steps, const Start<T>& start, const lcs::Path<T>& to);

  const System& system_;
  int n_;
  batch::BatchSolver<T> solver_;
  std::vector<T> M_, q_;
  linalg::AlignedVector<double> workspace_;
};

}  // namespace lcp::systems
