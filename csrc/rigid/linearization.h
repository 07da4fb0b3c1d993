// The derivative of a rollout of trees in its first state and in a control.
#pragma once

#include <cstdint>

#include "rigid/linear_step.h"

namespace lcp::rigid {

/// A and B of RobotLinearization for all steps together, through which the change of the control is the same. All
/// bodies must be of trees. Allocates as LinearStep does.
class Linearization {
 public:
  /// See LinearStep.
  Linearization(const Scene& scene, double tolerance, double rank_tolerance, Ties ties);

  /// NaN where a step was not solved.
  ///   A: [2 d, 2 d]. B: [2 d, a].
  void run(std::int64_t steps, const Parameters<const double>& parameters, const WalkedPath& walked, double* A,
           double* B);

 private:
  using Jacobian = TreeDerivative::Jacobian;

  void set_end(const State<const double>& end, Jacobian& to) const;
  void set_by_directions(const State<const double>& begin, const State<const double>& end, Jacobian& to);

  const Scene& scene_;
  LinearStep step_;
  Jacobian velocities_, own_, all_;
  StateBuffer<double> tangent_;
  std::vector<double> dofs_, du_, dgamma_;
};

}  // namespace lcp::rigid
