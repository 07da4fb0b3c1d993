// A step of a body on compliant ground and its derivative, in reverse and in forward mode.
//
// A step is x_next = x + dt v_next with the solution v_next of a contact::Problem, whose data are formulas of the start
// of the step, the input and the parameters. contact::Derivative has the derivative of the solution in these data, and
// a tape that of the formulas. Contacts without an impulse do not matter to either, since they stay separated: K of
// contact/cone.h is 0.
#pragma once

#include <cstdint>
#include <vector>

#include "compliant/simulator.h"
#include "contact/derivative.h"
#include "rigid/tape.h"

namespace lcp::compliant {

/// What a walk forward has written, see Path.
struct WalkedPath {
  Series<const double> next, gamma, y;
  Series<const std::int8_t> status;
};

/// Derivatives of what a step is computed from: the state at its start, the input and the parameters.
struct StepDerivative {
  double state[6], u[3], parameters[kMostParameters];
};

/// Allocates in the constructor, and where the tape becomes longer than it ever was.
class LinearStep {
 public:
  explicit LinearStep(const Body& body);

  /// Computes step s, which must be solved.
  void record(std::int64_t s, const Inputs& inputs, const WalkedPath& walked);

  /// The gradients for that of the end of the step and of the impulses of all contacts.
  StepDerivative reverse(const double* g_end, const double* g_gamma);

  /// The tangent of the end of the step, [6], and of the impulses of all contacts, [3 c].
  void forward(const StepDerivative& d, double* end, double* dgamma);

 private:
  template <class Use>
  void for_each_input(const Use& use);
  void pass_back(const double* g_v, const double* g_gamma);
  void pass_on(double* dv, double* dgamma);

  Body body_;
  std::vector<contact::Derivative> derivatives_;  // for one contact, for two, and so on
  ProblemData data_;
  rigid::Tape tape_;
  Start<rigid::Variable> start_;
  Problem<rigid::Variable> problem_;
  contact::Problem posed_ = {};  // the numbers of `problem_`
  std::vector<int> touching_;    // the contacts with an impulse
  double v_[3];                  // the solution

  // Arguments and results of the derivative, of the contacts that touch.
  double of_p_[3], of_v_free_[3];
  std::vector<double> y_, no_g_y_, of_gamma_, of_s_, of_R_, of_mu_, gamma_;
};

}  // namespace lcp::compliant
