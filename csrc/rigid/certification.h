// What is true of the steps of a walked trajectory of trees, with the exact cone.
#pragma once

#include <cstdint>
#include <vector>

#include "friction/derivative.h"
#include "rigid/linear_step.h"
#include "rigid/simulator.h"

namespace lcp::rigid {

/// A number for each step.
struct StepCertificates {
  Series<double> residual;  ///< friction::Certificate::residual of its problem, with all pairs of Simulator::pose_all
  Series<double> margin;    ///< friction::Certificate::margin, or 0 where the velocities are not unique
  Series<double> gap;       ///< m, the least of all contacts before the step; infinity without contacts
};

/// Poses the problem of each step once more, also with the pairs that the simulator left out, and certifies the
/// velocities and impulses of the trajectory. Steps must have no impacts.
class Certification {
 public:
  /// See LinearStep.
  Certification(const Scene& scene, double tolerance, double rank_tolerance);

  /// NaN from the first step on that was not solved, whose gap is known.
  void run(std::int64_t steps, const Parameters<const double>& parameters, const WalkedPath& walked,
           const StepCertificates& to);

 private:
  const Scene& scene_;
  double rank_tolerance_;
  Simulator simulator_;
  ForEachCount<friction::Derivative> derivatives_;
  std::vector<double> v_, gamma_, u_;
};

}  // namespace lcp::rigid
