// Walks rigid bodies backward in time: the gradients of their trajectories.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "rigid/contact_law.h"
#include "rigid/impacts.h"
#include "rigid/scene.h"
#include "rigid/simulator.h"
#include "rigid/step.h"
#include "rigid/tape.h"

namespace lcp::rigid {

/// What a walk backward reads: a walked path, what the simulator kept of each step for it, the pairs that were chosen
/// and the status of each step, and the gradients of the path.
struct WalkedPath {
  State<const double> first;
  Series<const double> u;
  Path<const double> path;
  Series<const double> unknowns;
  Series<const std::int8_t> states;
  Series<const std::int8_t> chosen;
  Series<const std::int8_t> status;
  Path<const double> gradient;
};

/// What it writes: the gradients of the parameters, summed over the steps, of the first state and of u. nullptr where a
/// gradient is not wanted.
struct Gradients {
  Parameters<double> parameters;
  State<double> first;
  Series<double> u;
};

/// In each step, what is smooth is computed once more on a Tape, of the chosen contacts alone: J, b and the free
/// velocities, and the end of the step as a function of nu, too. From the gradient of the end follows that of nu;
/// a ContactDerivative has the part of the solver; and from the gradients of J, b, R and the free velocities follow
/// those of the beginning and of the parameters. A step with impacts has several problems, each of which begins with
/// the velocities of the one before; a Simulator solves it again. Where a step was not solved all gradients that go
/// through it are 0 if that of its end is 0, else NaN.
///
/// Allocates in the constructor, where the tape becomes longer than it ever was, and as the ContactDerivative of the
/// law does.
class Adjoint {
 public:
  /// scene must outlive this object. tolerance: that of the Simulator that walked. rank_tolerance, ties: of
  /// make_derivative.
  Adjoint(const Scene& scene, double tolerance, double rank_tolerance, Ties ties);

  /// Walks one trajectory.
  void run(std::int64_t steps, const Parameters<const double>& parameters, const WalkedPath& walked,
           const Gradients& to);

 private:
  struct Leaf {
    int node;
    double* gradient;
  };
  // The state of all bodies, its gradient, or the nodes of it.
  template <class Number>
  struct Buffer {
    std::vector<Number> position, orientation, velocity, angular_velocity;

    explicit Buffer(int bodies)
        : position(3 * bodies), orientation(4 * bodies), velocity(3 * bodies), angular_velocity(3 * bodies) {}
    State<Number> state() { return {position.data(), orientation.data(), velocity.data(), angular_velocity.data()}; }
  };
  // The end of a step of a body.
  struct End {
    Vector<Variable> position;
    Quaternion<Variable> orientation;
    Vector<Variable> velocity, angular_velocity;
  };
  struct Leaves;  // reads the variables of a step, and adds them to the tape
  // A problem of the step, on the tape.
  struct Problem {
    std::span<const int> chosen;  // pairs
    SolvedContacts solution;
    std::vector<Variable> b;                   // of the chosen
    std::vector<Twist<Variable>> from, after;  // the velocities of each body
    int solved;                                // from this node on they depend on `after`
  };

  bool gather(std::int64_t s, const WalkedPath& walked);
  void fill(const Parameters<double>& to, double number) const;
  void fail(std::int64_t s, const Gradients& to);
  void step(std::int64_t s, const State<const double>& now, const Parameters<const double>& parameters,
            const WalkedPath& walked, const Gradients& to);
  void add_only_problem(std::int64_t s, const WalkedPath& walked, Leaves& read);
  void add_problems(std::span<const StepProblem> problems, Leaves& read);
  Problem& begin_problem(std::span<const int> chosen, Leaves& read);
  void end_problem(Problem& problem, const SolvedContacts& solution);
  Approach<Variable> approach_of(int pair, const Variable& elapsed) const;
  Variable add_impacts(const StepProblem& problem, const Variable& elapsed, std::vector<Variable>& b, Leaves& read);
  void move(const Variable& time);
  void seed_end(Leaves& read);
  void pass_solver(const Problem& problem, const Parameters<const double>& parameters, const Parameters<double>& to);

  const Scene& scene_;
  Simulator simulator_;  // of steps with impacts
  std::unique_ptr<ContactDerivative> derivative_;
  Tape tape_;
  Buffer<double> carried_;                  // the gradient of the end of the step before
  std::vector<double> carried_gamma_;       // that of the impulses of all pairs
  Buffer<Variable> state_;                  // the beginning of the step
  std::vector<Matrix<Variable>> rotation_;  // of each body, where it is known
  std::vector<char> has_rotation_;
  std::vector<Twist<Variable>> before_, free_, after_;  // the velocities of each body
  std::vector<Twist<Variable>> start_;                  // those before the impacts
  std::vector<Twist<Variable>> motion_;                 // of each body until now, in a step with impacts
  std::vector<Variable> time_;                          // of each body, of its last impact
  std::vector<Vector<Variable>> held_;                  // of held_velocity, as time_
  std::vector<InverseMass<Variable>> inverse_;          // of each body, for compliant contact
  std::vector<int> chosen_;                             // pairs
  std::vector<Contact<Variable>> contacts_;             // of each pair, where it is known
  std::vector<Row<Variable>> rows_;                     // of J, three for each pair
  std::vector<Regularization<Variable>> compliances_;   // of each pair, for compliant contact
  std::vector<char> has_contact_, has_met_;
  std::vector<Variable> times_;  // of the chosen of a problem
  std::vector<Rebound<Variable>> rebounds_;
  bool has_impacts_ = false;
  std::vector<Problem> problems_;
  std::size_t count_ = 0;  // of the problems of this step
  std::vector<End> ends_;
  std::vector<Leaf> leaves_;                                               // of the parameters and of u
  std::vector<double> A_, v_, g_v_, a_;                                    // [n, n] and [n] with n = 6 b
  std::vector<double> J_, b_, R_, mu_, gamma_, c_, g_gamma_, g_R_, g_mu_;  // of the chosen
};

}  // namespace lcp::rigid
