// Walks rigid bodies backward in time: the gradients of their trajectories.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "friction/derivative.h"
#include "rigid/impacts.h"
#include "rigid/scene.h"
#include "rigid/step.h"
#include "rigid/tape.h"

namespace lcp::rigid {

/// What a walk backward reads: a walked path, the pairs that were chosen and the status of each step, and the gradients
/// of the path.
struct WalkedPath {
  State<const double> first;
  Series<const double> u;
  Path<const double> path;
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
/// friction::Derivative has the part of the solver; and from the gradients of J, b and the free velocities follow those
/// of the beginning and of the parameters. Where a step was not solved all gradients that go through it are 0 if that
/// of its end is 0, else NaN.
///
/// Allocates in the constructor, for the first step with as many contacts as none had before, where the tape becomes
/// longer than it ever was, and as friction::Derivative does.
class Adjoint {
 public:
  /// scene must outlive this object. rank_tolerance: of friction::Derivative.
  Adjoint(const Scene& scene, double rank_tolerance);

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

  friction::Derivative& derivative(int contacts);
  bool gather(std::int64_t s, const WalkedPath& walked);
  void fill(const Parameters<double>& to, double number) const;
  void fail(std::int64_t s, const Gradients& to);
  void step(std::int64_t s, const State<const double>& now, const Parameters<const double>& parameters,
            const WalkedPath& walked, const Gradients& to);
  void add_contacts(Leaves& read);
  void seed_end(Leaves& read);
  void pass_solver(const Parameters<double>& to);

  const Scene& scene_;
  double rank_tolerance_, threshold_ = 0;
  std::vector<std::unique_ptr<friction::Derivative>> derivatives_;  // for each number of contacts
  Tape tape_;
  Buffer<double> carried_;                  // the gradient of the end of the step before
  std::vector<double> carried_gamma_;       // that of the impulses of the chosen
  Buffer<Variable> state_;                  // the beginning of the step
  std::vector<Matrix<Variable>> rotation_;  // of each body, where it is known
  std::vector<char> has_rotation_;
  std::vector<Twist<Variable>> before_, free_, after_;  // the velocities of each body
  std::vector<int> chosen_;                             // pairs
  std::vector<Row<Variable>> rows_;                     // of J, three for each of the chosen
  std::vector<Separation<Variable>> separations_;       // of the chosen
  std::vector<Touch> touches_;
  std::vector<int> touching_;  // the places of the touches among the chosen
  Impacts impacts_;
  std::vector<End> ends_;
  std::vector<Leaf> leaves_;                                        // of the parameters and of u
  std::vector<double> A_, v_, g_v_, a_;                             // [n, n] and [n] with n = 6 b
  std::vector<double> J_, b_, mu_, gamma_, u_, no_g_u_, c_, g_mu_;  // of the chosen
};

}  // namespace lcp::rigid
