// Walks bodies on compliant ground backward in time: the gradients of their trajectories.
//
// A step is x_next = x + dt v_next with the solution v_next of a contact::Problem, whose data are formulas of the start
// of the step, the input and the parameters. contact::Derivative makes the gradients of these data from those of v_next
// and gamma; a tape of the formulas passes them on. Contacts without an impulse do not matter to either, since they
// stay separated: K of contact/cone.h is 0.
#pragma once

#include <cstdint>
#include <vector>

#include "compliant/simulator.h"
#include "contact/derivative.h"
#include "rigid/tape.h"

namespace lcp::compliant {

/// What a walk forward has written (Path), and the gradients of the ends of its steps and of their impulses.
struct WalkedPath {
  Series<const double> next, gamma, y;
  Series<const std::int8_t> status;
  Series<const double> g_next, g_gamma;
};

/// What it writes: the gradients of the parameters, summed over the steps, of the first state and of the inputs.
/// nullptr where one is not wanted.
struct Gradients {
  double *parameters, *first;
  Series<double> u;
};

/// A gradient that goes through a step that was not solved is NaN.
///
/// Allocates in the constructor, and where the tape becomes longer than it ever was.
class Adjoint {
 public:
  explicit Adjoint(const Body& body);

  /// Walks one trajectory.
  void run(std::int64_t steps, const Inputs& inputs, const WalkedPath& walked, const Gradients& to);

 private:
  void step(const double* now, const double* u, std::int64_t s, const Inputs& inputs, const WalkedPath& walked);
  void pass_solver(const double* g_v, const double* v);

  Body body_;
  std::vector<contact::Derivative> derivatives_;  // for one contact, for two, and so on
  ProblemData data_;
  rigid::Tape tape_;
  Start<rigid::Variable> start_;
  Problem<rigid::Variable> problem_;
  std::vector<int> touching_;     // the contacts with an impulse
  double carried_[6];             // the gradient of the end of a step, then that of its start
  double of_u_[3];                // that of its input
  double sums_[kMostParameters];  // those of the parameters, of all steps

  // The derivative's arguments and results.
  double l_[3], of_v_free_[3];
  std::vector<double> y_, no_g_y_, g_gamma_, of_v_hat_, of_R_, of_mu_, gamma_;
};

}  // namespace lcp::compliant
