// Walks bodies on compliant ground forward in time.
#pragma once

#include <cstddef>
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

  /// Those of the values of `problem`.
  template <class T>
  contact::Problem set(const Problem<T>& problem) {
    using rigid::value_of;
    for (std::size_t i = 0; i < 3; ++i) {
      A_[4 * i] = value_of(problem.inertia[i]);
      v_free_[i] = value_of(problem.v_free[i]);
    }
    for (std::size_t k = 0; k < problem.count; ++k) {
      const Contact<T>& contact = problem.contacts[k];
      for (std::size_t i = 0; i < 3; ++i) {
        for (std::size_t j = 0; j < 3; ++j) J_[9 * k + 3 * i + j] = value_of(contact.J[i][j]);
      }
      v_hat_[3 * k + 2] = value_of(contact.v_hat);
      R_[3 * k] = R_[3 * k + 1] = value_of(contact.R.tangent);
      R_[3 * k + 2] = value_of(contact.R.normal);
      mu_[k] = value_of(problem.mu);
    }
    return {A_.data(), v_free_.data(), J_.data(), v_hat_.data(), R_.data(), mu_.data()};
  }

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
  std::vector<int> contacts_;  // all of them
  contact::Newton newton_;
  Problem<double> problem_;
  ProblemData data_;
};

}  // namespace lcp::compliant
