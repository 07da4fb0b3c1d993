// Walks bodies on compliant ground forward in time.
#pragma once

#include <cstdint>
#include <vector>

#include "compliant/step.h"
#include "contact/newton.h"
#include "rigid/scene.h"

namespace lcp::compliant {

using rigid::Series;

/// What a trajectory is computed from, row-major.
struct Inputs {
  const double* parameters;  ///< [p], see parameters_of
  const double* first;       ///< [6], the position and the velocity before the first step
  Series<const double> u;    ///< [3] of each step
};

/// What a walk forward writes of each step.
struct Path {
  Series<double> next;   ///< [6], the position and the velocity at its end
  Series<double> gamma;  ///< [3 c], N s
  Series<double> y;      ///< [3 c], of contact::Problem, which a walk backward needs
  Series<std::int8_t> status;
  Series<std::int64_t> iterations;
};

/// The arrays of a contact::Problem.
class ProblemData {
 public:
  explicit ProblemData(int contacts);

  contact::Problem set(const Problem<double>& problem);

 private:
  std::vector<double> A_, v_free_, J_, v_hat_, R_, mu_;
};

/// A step starts Newton's method at its first velocity. The path is NaN from the first step on that is not solved; the
/// status is kBadInput where the first state, the input of the step or of one before is not finite, or a step before
/// was not solved.
///
/// Allocates only in the constructor.
class Simulator {
 public:
  Simulator(const Body& body, const contact::Limits& limits);

  /// Walks one trajectory.
  void run(std::int64_t steps, const Inputs& inputs, const Path& path);

 private:
  Body body_;
  contact::Limits limits_;
  contact::Newton newton_;
  ProblemData data_;
};

}  // namespace lcp::compliant
