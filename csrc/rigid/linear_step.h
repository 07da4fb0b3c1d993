// A step of a walked trajectory and its derivative, in reverse and in forward mode.
#pragma once

#include <algorithm>
#include <array>
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
#include "rigid/tree_derivative.h"

namespace lcp::rigid {

/// A walked trajectory, with what the simulator kept of each step for its derivative.
struct WalkedPath {
  State<const double> first;
  Series<const double> u;
  Path<const double> path;
  Series<const double> unknowns;
  Series<const std::int8_t> states;
  Series<const std::int8_t> chosen;
  Series<const std::int8_t> status;

  /// The state before step s.
  State<const double> before(std::int64_t s) const { return s == 0 ? first : path.state(s - 1); }
};

/// A number for each of the numbers of a state.
template <class Number>
using StateBuffer = std::array<std::vector<Number>, kStateParts>;

template <class Number>
StateBuffer<Number> state_buffer(const Scene& scene) {
  StateBuffer<Number> buffer;
  for (int part = 0; part < kStateParts; ++part) buffer[part].resize(size_of(static_cast<StatePart>(part), scene));
  return buffer;
}

/// Makes the first `count` of all buffers 0. Allocates where there have never been so many.
inline void reset(std::size_t count, const Scene& scene, std::vector<StateBuffer<double>>& all) {
  while (all.size() < count) all.push_back(state_buffer<double>(scene));
  for (std::size_t k = 0; k < count; ++k) {
    for (std::vector<double>& part : all[k]) std::fill(part.begin(), part.end(), 0.0);
  }
}

/// What is smooth is computed once more on a Tape, of the chosen contacts alone: the data p and s of ContactData, for
/// the velocities and impulses of the solution, and the end of the step as a function of these velocities. A
/// ContactDerivative has the part of the solver between them. A step with impacts has several problems, each of which
/// begins with the velocities of the one before; a Simulator solves it again. Where derivatives are smoothed, all pairs
/// that may close without an impact count as chosen.
///
/// The motion of trees has a derivative in closed form in the state, without tape, where their masses and the placement
/// of their joints are constants, and the step has no impacts.
///
/// Allocates in the constructor, where the tape becomes longer than it ever was, and as the ContactDerivative of the
/// law does.
class LinearStep {
 public:
  /// scene must outlive this object. tolerance: that of the Simulator that walked. rank_tolerance, ties: of
  /// make_derivative.
  LinearStep(const Scene& scene, double tolerance, double rank_tolerance, Ties ties);

  /// Makes the parameters those of the steps that follow. varies, u_varies: which of them have a derivative.
  void begin(const Parameters<const double>& parameters, const std::array<bool, kParameters>& varies, bool u_varies);

  /// Computes step s, which must be solved, for any number of calls of `reverse` and `forward`.
  void record(std::int64_t s, const WalkedPath& walked);

  /// Replaces the gradient of the end of the step by that of its beginning, and adds those of the parameters and of u.
  ///   g_gamma: [3 c], of the impulses of all pairs; of those that were not chosen it is not read.
  void reverse(StateBuffer<double>& gradient, const double* g_gamma, const Parameters<double>& to, double* to_u);

  /// Replaces the tangent of the beginning of the step by that of its end, for those of the parameters and of u.
  ///   dgamma: [3 c], gets that of the impulses of all pairs.
  void forward(StateBuffer<double>& tangent, const Parameters<const double>& d, const double* du, double* dgamma);

  /// Whether the motion of trees has its derivative in closed form, at one point.
  bool has_jacobian() const { return uses_trees_ && !has_two_points_ && !has_given_impulse_; }
  /// The derivative of the velocities after the step, [d, 2 d + a], in the displacements of the d degrees of freedom,
  /// in the velocities before and in the controls, which must be the only derivatives. All bodies must be of trees.
  void set_jacobian(TreeDerivative::Jacobian& to);

 private:
  // Number `index` of a parameter, or of u.
  struct Leaf {
    int node, input, index;
  };
  static constexpr int kForces = kParameters;
  struct Leaves;  // reads the variables of a step, and adds them to the tape
  struct TouchedBody {
    int body;
    Wrench<Variable> impulse;
  };
  // The data of a problem of the step, on the tape, at a point.
  struct Data {
    std::vector<Variable> p, s;
    // Where trees_ is used, p is besides: the impulses of contacts on the bodies that they touch, about the origins of
    // the trees, and what has this derivative in the displacements and in the velocities before.
    std::vector<TouchedBody> touched;
    TreeDerivative::Jacobian by_trees;
  };
  // A problem of the step.
  struct Problem {
    std::span<const int> chosen;  // pairs
    SolvedContacts solution;
    std::vector<Variable> b, mu;                  // of the chosen contacts
    std::vector<Variable> lower, upper;           // the bounds of the rows
    std::vector<double> compliance;               // of the rows
    std::vector<ServoRow<Variable>> servos;       // of those that are servos
    std::vector<CouplingGap<Variable>> gaps;      // of the couplings
    std::vector<ClosurePoints<Variable>> points;  // of the closures
    std::vector<Vector<Variable>> turns;          // of the same, where they are welds
    std::vector<double> b_of_rows;                // m/s or rad/s
    std::vector<Variable> from, after;            // velocities
    bool is_first;                                // of the step
    Data data, data_of_solution;                  // at the point of the derivative, and, if it has two, at the solution
    int solved;                                   // from this node on they depend on `after`
  };

  void add_only_problem(std::int64_t s, const WalkedPath& walked, Leaves& read);
  void add_problems(std::span<const StepProblem> problems, Leaves& read);
  Problem& begin_problem(std::span<const int> chosen, Leaves& read);
  void end_problem(Problem& problem, const SolvedContacts& solution, Leaves& read);
  void add_data(const Problem& problem, const SolvedContacts& at, Leaves& read, Data& data);
  void add_trees(const Problem& problem, const SolvedContacts& at, const double* u, Data& data);
  void set_displacements();
  template <class Rate>
  void add_displacements(int body, const Rate& rate, Vector<Variable>& angular, Vector<Variable>& linear);
  void set_place(int body);
  void set_motion(int body, Motion<Variable>& to);
  Approach<Variable> approach_of(int pair, const Variable& elapsed) const;
  Variable add_impacts(const StepProblem& problem, const Variable& elapsed, std::vector<Variable>& b, Leaves& read);
  void set_bodies(Velocities<Variable>& nu);
  void move(const Variable& time);
  void end_step(Leaves& read);
  void linearize(const Problem& problem);
  void pass_back(const Problem& problem, const double* g_gamma, double* to_u);
  void pass_on(const Problem& problem, const double* du, double* dgamma);

  const Scene& scene_;
  Simulator simulator_;
  std::unique_ptr<ContactDerivative> derivative_;
  Tape tape_;
  Parameters<const double> parameters_ = {};
  std::array<bool, kParameters + 1> varies_ = {};  // of each parameter, and of u
  StateBuffer<Variable> state_, end_;              // the beginning and the end of the step
  Places<Variable> places_;
  std::vector<char> has_rotation_;  // whether that of a body is known, where it is not set at once
  Velocities<Variable> before_, after_;
  Velocities<Variable> start_;                         // those before the impacts
  Velocities<Variable> motion_;                        // until now, in a step with impacts
  std::vector<Variable> time_;                         // of each body, of its last impact
  std::vector<Vector<Variable>> held_;                 // of held_velocity, as time_
  std::vector<InverseMass<Variable>> inverse_;         // of each body, for compliant contact
  std::vector<int> chosen_;                            // pairs
  std::vector<Contact<Variable>> contacts_;            // of each pair, where it is known
  std::vector<Matrix<Variable>> frames_;               // of each pair, as contacts_: the rows (t1, t2, n)
  std::vector<Row<Variable>> normals_;                 // of each pair, as contacts_, in a step with impacts
  std::vector<Regularization<Variable>> compliances_;  // of each pair, for compliant contact
  std::vector<char> has_contact_, has_met_;
  std::vector<Variable> times_;  // of the chosen of a problem
  std::vector<Rebound<Variable>> rebounds_;
  bool has_impacts_ = false;
  bool has_given_impulse_ = false;  // whether the impulse of a servo is given, by numbers that have derivatives
  std::vector<Problem> problems_;
  std::size_t count_ = 0;  // of the problems of this step
  bool is_smoothed_,
      has_two_points_;  // whether the law is; whether `v` is of the solution and z of a point of the path
  const Problem* posed_of_ = nullptr;        // the problem that posed_ is, and the derivative_ knows
  bool is_asked_ = false, is_same_ = false;  // whether the derivative_ has been asked about it, also before this call
  ContactProblem posed_ = {};
  SolvedContacts at_ = {};  // ContactDerivative::point of it
  TreeDerivative trees_;
  bool may_use_trees_ = false, uses_trees_ = false;  // whether the parameters allow it; whether this step uses it
  std::vector<Variable> displacements_;              // of the degrees of freedom of the trees
  int displaced_ = 1;                                // from this node on they depend on displacements_
  Eigen::VectorXd of_states_;                        // of these and of the velocities before
  TreeDerivative::Jacobian of_p_and_s_, of_rows_;    // derivatives in the same and in the controls
  Eigen::MatrixXd v_by_p_, v_by_s_;
  JointForces<Variable> joints_;
  TreeWork<Variable> work_;
  std::vector<char> is_turned_;     // whether work_ has the motion of a body, where it is not set at once
  std::vector<Variable> at_point_;  // the velocities of a point, which are constants
  std::vector<Leaf> leaves_;
  std::vector<double> v_, from_, of_v_, of_p_, of_p_of_solution_;                // [n]
  std::vector<double> J_, b_, R_, mu_, gamma_, of_gamma_, of_s_, of_R_, of_mu_;  // of the chosen
  std::vector<double> lower_, upper_, compliance_, of_lower_, of_upper_;         // of the rows
  std::vector<double> unknowns_;                                                 // of the chosen, where is_smoothed_
};

}  // namespace lcp::rigid
