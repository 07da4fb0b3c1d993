// Walks rigid bodies backward in time: the gradients of their trajectories.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "rigid/contact_law.h"
#include "rigid/impacts.h"
#include "rigid/scene.h"
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
  Series<const bool> chosen;
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
/// those of the beginning and of the parameters. Where a step was not solved all gradients that go through it are 0 if
/// that of its end is 0, else NaN.
///
/// Allocates in the constructor, where the tape becomes longer than it ever was, and as the ContactDerivative of the
/// law does.
class Adjoint {
 public:
  /// scene must outlive this object. rank_tolerance, ties: of make_derivative.
  Adjoint(const Scene& scene, double rank_tolerance, Ties ties);

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

  bool gather(std::int64_t s, const WalkedPath& walked);
  void fill(const Parameters<double>& to, double number) const;
  void fail(std::int64_t s, const Gradients& to);
  void step(std::int64_t s, const State<const double>& now, const Parameters<const double>& parameters,
            const WalkedPath& walked, const Gradients& to);
  void add_contacts(Leaves& read);
  void seed_end(Leaves& read);
  void pass_solver(std::int64_t s, const WalkedPath& walked, const Parameters<double>& to);

  const Scene& scene_;
  double threshold_ = 0;
  std::unique_ptr<ContactDerivative> derivative_;
  Tape tape_;
  Buffer<double> carried_;                  // the gradient of the end of the step before
  std::vector<double> carried_gamma_;       // that of the impulses of the chosen
  Buffer<Variable> state_;                  // the beginning of the step
  std::vector<Matrix<Variable>> rotation_;  // of each body, where it is known
  std::vector<char> has_rotation_;
  std::vector<Twist<Variable>> before_, free_, after_;  // the velocities of each body
  std::vector<InverseMass<Variable>> inverse_;          // of each body, for compliant contact
  std::vector<int> chosen_;                             // pairs
  std::vector<Row<Variable>> rows_;                     // of J, three for each of the chosen
  std::vector<Separation<Variable>> separations_;       // of the chosen
  std::vector<Regularization<Variable>> compliances_;   // of the chosen, for compliant contact
  std::vector<Touch> touches_;
  std::vector<int> touching_;  // the places of the touches among the chosen
  Impacts impacts_;
  std::vector<End> ends_;
  std::vector<Leaf> leaves_;                                     // of the parameters and of u
  std::vector<double> A_, v_, g_v_, a_;                          // [n, n] and [n] with n = 6 b
  std::vector<double> J_, b_, R_, mu_, gamma_, c_, g_R_, g_mu_;  // of the chosen
};

}  // namespace lcp::rigid
