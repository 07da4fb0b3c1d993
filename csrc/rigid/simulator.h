// Walks rigid bodies forward in time.
#pragma once

#include <Eigen/Cholesky>
#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "rigid/contact_law.h"
#include "rigid/impacts.h"
#include "rigid/scene.h"
#include "rigid/step.h"

namespace lcp::rigid {

/// How a pair took part in a step.
enum Choice : std::int8_t {
  kNotChosen = 0,
  kChosen = 1,      ///< its contact was solved in the only problem of the step
  kWithImpacts = 2  ///< its contact was solved in one of the problems of a step with impacts
};

/// What a walk forward writes, besides the path: for each step what the derivative of the law needs, of the chosen
/// pairs one behind another, [c unknowns_of(law)], where the step has one problem; the Choice of each pair, [c]; the
/// status and the Newton steps.
struct Outcome {
  Series<double> unknowns;  ///< its data and that of the states is nullptr where no derivative will be asked for
  Series<std::int8_t> states;
  Series<std::int8_t> chosen;
  Series<std::int8_t> status;
  Series<std::int64_t> iterations;
};

/// Pairs that would not close carry no impulse. Solving for those that would without contact may bring others to close;
/// these are added until there are none. Impacts are solved one after another, as the head of
/// include/lcp/physics/rigid_scene.h says. The path is NaN from the first step on that is not solved. The status is
/// kBadInput where a number that a step depends on is not finite, or a quaternion is 0.
///
/// Allocates in the constructor, where a step has more problems than any before, as the ContactSolver of the law does,
/// and for the problems of a step with impacts where derivatives are smoothed.
class Simulator {
 public:
  /// scene must outlive this object. tolerance: of make_solver.
  Simulator(const Scene& scene, double tolerance);

  /// Walks one trajectory. u: for each step [b, 6], N and N m. has_begun: whether the parameters are those of the last
  /// run.
  void run(std::int64_t steps, const Parameters<const double>& parameters, const State<const double>& first,
           Series<const double> u, const Path<double>& path, const Outcome& outcome, bool has_begun = false);

  /// Makes the parameters those of the steps that problems_of is asked for.
  void begin(const Parameters<const double>& parameters);
  /// Computes what a step begins with, and where these pairs meet, for the next functions. False where numbers are not
  /// finite, a quaternion is 0, or the mass matrix of the trees is not positive definite.
  bool set_step(const Parameters<const double>& parameters, const State<const double>& now, const double* u,
                std::span<const int> chosen);
  const std::vector<double>& mass_matrix() const { return A_; }  ///< A, [n, n]
  const Places<double>& places() const { return places_; }
  const Velocities<double>& free_velocities() const { return free_; }
  /// `free` of find_joint_forces.
  const double* unlimited_velocities() const { return unlimited_.empty() ? nullptr : unlimited_.data(); }
  void set_rows(std::span<const int> chosen, double* J);  ///< J of some of these pairs

  /// Poses the problem of a step of trees without impacts, for the next functions, with all pairs that the speeds of
  /// bodies may close, those without contacts or those of `end`. False as set_step.
  bool pose_all(const Parameters<const double>& parameters, const State<const double>& now, const double* u,
                const State<const double>& end);
  std::span<const int> chosen() const { return chosen_; }
  ContactProblem posed() const;
  double least_gap() const;  ///< m, of all contacts; infinity where there are none

  /// The problems of a step with impacts that a run has solved. The next call overwrites them. Where derivatives are
  /// smoothed, all pairs that may close without an impact are chosen, as such a derivative sees them, too.
  std::span<const StepProblem> problems_of(const Parameters<const double>& parameters, const State<const double>& now,
                                           const double* u);

 private:
  using Kind = StepProblem::Kind;
  using Role = StepProblem::Role;
  // A pair in the step that is being solved.
  struct Meeting {
    Contact<double> contact;
    Row<double> rows[3];  // along (t1, t2, n)
    bool has_tangents;    // whether the first two are known
    double b;             // m/s
    double time, held;    // of an impact: its time_of, s, and Rebound::held, m/s
    bool collides;        // in the first pair of a collision: whether one of its pairs has an impact now
    bool has_met;         // whether it has had an impact in the step
    bool is_far = false;  // whether it is known not to close, without its rows
    bool waits;           // whether it is an impact, which the first problem of the step leaves out
    bool chosen;          // in the problem that is being solved
    Role role;
    Choice choice;
    double slope;                     // of a coupling, or the gear of a servo
    double lower, upper, compliance;  // of a servo
  };
  struct Numbers;  // reads those of a step
  // What the solver writes for the derivative.
  struct Kept {
    double* unknowns;
    std::int8_t* states;
  };

  void set_bodies(Velocities<double>& nu);
  bool find_trees(const Numbers& read);
  bool find_free(const Numbers& read);
  bool find_row(int k, const Numbers& read);
  bool find(const Numbers& read);
  Status solve(const Numbers& read, const Kept& kept, std::int64_t& iterations);
  Status hold(const Numbers& read, Kind kind, const Kept& kept, std::int64_t& iterations);
  Status collide(const Numbers& read, std::int64_t& iterations);
  Status hold_slow(const Numbers& read, double elapsed, double least, std::int64_t& iterations);
  void keep_problem();
  void add_open_pairs(StepProblem& problem) const;
  void begin_problem();
  Status solve_chosen(const Numbers& read, const Kept& kept, std::int64_t& iterations);
  void finish_problem(Kind kind);
  Approach<double> approach_of(int k, double elapsed) const;
  double next_impacts(const Numbers& read, double elapsed, double least);
  void move(double time);
  void pose_problem(const Numbers& read);
  const Row<double>* rows(int k);
  double velocity_of(int k, const Row<double>& row, const Velocities<double>& nu) const;
  bool choose(const Numbers& read, const Velocities<double>& nu, double slack);
  void set_speeds(const Velocities<double>& nu);
  double fastest(int k) const;
  bool may_move(int k);
  void list_chosen();
  void advance(const Numbers& read, const State<double>& next);

  const Scene& scene_;
  double threshold_ = 0;
  bool skips_far_ = false;  // whether pairs that are too far to close are skipped: in trees without impacts
  Status of_A_ = Status::kBadInput;
  std::unique_ptr<ContactSolver> solver_;
  Places<double> places_;
  Velocities<double> before_, free_, after_;
  Velocities<double> start_;                   // those before the impacts
  Velocities<double> motion_;                  // until now, in a step with impacts
  std::vector<double> time_;                   // of each body, of its last impact
  std::vector<Vector<double>> held_;           // of each body, held_velocity of its last impact, m/s
  std::vector<InverseMass<double>> inverse_;   // of each body, for compliant contact
  std::vector<std::array<double, 2>> speeds_;  // of each body and of its turning, where far pairs are skipped
  std::vector<Meeting> meetings_;              // of each pair
  std::vector<int> collision_;                 // of each pair: the first pair of the same two bodies, or body and plane
  std::vector<int> chosen_;                    // pairs
  std::vector<Role> roles_;                    // of the chosen, in a step with impacts
  bool has_impacts_ = false, keeps_problems_ = false;
  bool may_close_ = false;             // whether a pair that was an impact at the last problem no longer is
  std::vector<StepProblem> problems_;  // where they are kept
  std::size_t count_ = 0;              // of the problems of this step
  CompositeBodies composites_;
  TreeWork<double> work_;
  JointForces<double> joints_;
  Eigen::MatrixXd tree_A_;  // of the trees
  Eigen::LLT<Eigen::MatrixXd> factors_;
  Eigen::VectorXd change_;
  std::vector<double> unlimited_;     // the free velocities of the trees where actuators have no limits, if some have
  std::vector<double> A_, from_, v_;  // [n, n] and [n] with n velocities
  std::vector<double> J_, one_J_, b_, R_, mu_, gamma_;  // of the chosen, and of one pair
  std::vector<double> lower_, upper_, compliance_;      // of the rows
  std::vector<ClosurePoints<double>> closed_;           // of the closures
  std::vector<Vector<double>> turns_;                   // of the welds among them
  std::vector<double> impulses_;                        // [3 c], of all pairs
};

}  // namespace lcp::rigid
