// Walks rigid bodies forward in time.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "rigid/contact_law.h"
#include "rigid/impacts.h"
#include "rigid/scene.h"
#include "rigid/step.h"

namespace lcp::rigid {

/// What a walk forward writes, besides the path: for each step what the derivative of the law needs, of the chosen
/// pairs one behind another, [c unknowns_of(law)]; the pairs whose contact was solved, [c]; the status and the Newton
/// steps.
struct Outcome {
  Series<double> unknowns;  ///< its data and that of the states is nullptr where no derivative will be asked for
  Series<std::int8_t> states;
  Series<bool> chosen;
  Series<std::int8_t> status;
  Series<std::int64_t> iterations;
};

/// Pairs that would not close carry no impulse. Solving for those that would without contact may bring others to close;
/// these are added until there are none. The path is NaN from the first step on that is not solved. The
/// status is kBadInput where a number that a step depends on is not finite, or a quaternion is 0.
///
/// Allocates in the constructor, and as the ContactSolver of the law does.
class Simulator {
 public:
  /// scene must outlive this object. tolerance: of make_solver.
  Simulator(const Scene& scene, double tolerance);

  /// Walks one trajectory. u: for each step [b, 6], N and N m.
  void run(std::int64_t steps, const Parameters<const double>& parameters, const State<const double>& first,
           Series<const double> u, const Path<double>& path, const Outcome& outcome);

 private:
  // A pair in the step that is being solved.
  struct Meeting {
    Contact<double> contact;
    Row<double> rows[3];  // along (t1, t2, n)
    bool has_tangents;    // whether the first two are known
    Separation<double> separation;
    bool chosen;
  };
  struct Numbers;  // reads those of a step

  bool find(const Numbers& read);
  Status solve(const Numbers& read, double* unknowns, std::int8_t* states, std::int64_t& iterations);
  void pose_problem(const Numbers& read);
  const Row<double>* rows(int k, const Numbers& read);
  double velocity_of(int k, const Row<double>& row, const Twist<double>* nu) const;
  bool choose(const Numbers& read, const Twist<double>* nu, double slack);
  void list_chosen();
  void advance(const Numbers& read, const State<double>& next);

  const Scene& scene_;
  double threshold_ = 0;
  std::unique_ptr<ContactSolver> solver_;
  std::vector<Matrix<double>> rotation_;              // of each body
  std::vector<Twist<double>> before_, free_, after_;  // the velocities of each body
  std::vector<InverseMass<double>> inverse_;          // of each body, for compliant contact
  std::vector<Meeting> meetings_;                     // of each pair
  std::vector<int> chosen_;                           // pairs
  std::vector<Touch> touches_;
  Impacts impacts_;
  std::vector<double> A_, v_free_, v_;          // [n, n] and [n] with n = 6 b
  std::vector<double> J_, b_, R_, mu_, gamma_;  // of the chosen
};

}  // namespace lcp::rigid
