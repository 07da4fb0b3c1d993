// Walks rigid bodies backward in time: the gradients of their trajectories.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "rigid/linear_step.h"

namespace lcp::rigid {

/// What a walk backward writes: the gradients of the parameters, summed over the steps, of the first state and of u.
/// nullptr where a gradient is not wanted.
struct Gradients {
  Parameters<double> parameters;
  State<double> first;
  Series<double> u;
};

/// Where a step was not solved all gradients that go through it are 0 if that of its end is 0, else NaN. Allocates as
/// LinearStep does.
class Adjoint {
 public:
  /// See LinearStep.
  Adjoint(const Scene& scene, double tolerance, double rank_tolerance, Ties ties);

  /// Walks one trajectory, whose steps it computes once, for several gradients of the path.
  ///   to: for each of them; of the same parameters, and of u, for all.
  void run(std::int64_t steps, const Parameters<const double>& parameters, const WalkedPath& walked,
           std::span<const Path<const double>> gradients, std::span<const Gradients> to);

 private:
  using Carried = StateBuffer<double>;  // the gradient of the end of a step

  bool gather(std::int64_t s, const WalkedPath& walked, const Path<const double>& gradient, Carried& carried);
  void fail(std::int64_t s, const Gradients& to, Carried& carried);

  const Scene& scene_;
  LinearStep step_;
  std::vector<Carried> carried_;  // for each gradient
};

}  // namespace lcp::rigid
