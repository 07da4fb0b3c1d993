// Walks linear complementarity systems forward in time.
#pragma once

#include <cstdint>
#include <vector>

#include "batch/batch_solver.h"
#include "lcs/cone.h"
#include "lcs/kernels.h"
#include "lcs/system.h"
#include "linalg/aligned.h"

namespace lcp::lcs {

/// T is the type of the numbers in memory, double or float. A trajectory's result depends neither on the other
/// trajectories nor on its place among them. Systems of few pairs are walked by the vector kernels, but for the
/// problems that these leave. Allocates once for a run, and as BatchSolver does.
template <class T>
class Simulator {
 public:
  Simulator(const Size& size, Cone cone, const solver::Settings& settings);

  /// Steps `count` trajectories, which begin at x: count x k.
  void run(std::int64_t count, std::int64_t steps, const System<T>& system, BatchView<T> x, StepsView<T> u,
           const Path<T>& to);

 private:
  void run_kernel(std::int64_t count, std::int64_t steps, const System<T>& system, BatchView<T> x, StepsView<T> u,
                  const Path<T>& to);
  void run_block(std::int64_t count, std::int64_t steps, const System<T>& system, BatchView<T> x, StepsView<T> u,
                 const Path<T>& to);
  void advance(const System<T>& system, std::int64_t b, const T* x, const T* u, const T* q, const T* z, const T* w,
               T* residual, T* x_next) const;

  Size size_;
  Cone cone_;
  double tolerance_;
  batch::BatchSolver<T> solver_;
  const WalkKernels<T>* kernels_ = nullptr;
  linalg::AlignedVector<double> workspace_;
  std::vector<T> q_;
};

}  // namespace lcp::lcs
