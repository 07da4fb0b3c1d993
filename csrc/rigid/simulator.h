// Walks rigid bodies forward in time, with the exact cone of Coulomb's law.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "friction/ladder.h"
#include "rigid/impacts.h"
#include "rigid/scene.h"
#include "rigid/step.h"

namespace lcp::rigid {

/// What a walk forward writes, besides the path: for each step the pairs whose contact was solved, [c], the status and
/// the Newton steps.
struct Outcome {
  Series<bool> chosen;
  Series<std::int8_t> status;
  Series<std::int64_t> iterations;
};

/// Pairs that would not close carry no impulse. Solving for those that would without contact may bring others to close;
/// these are added until there are none. The path is NaN from the first step on that is not solved. The
/// status is kBadInput where a number that a step depends on is not finite, or a quaternion is 0.
///
/// Allocates in the constructor, for the first problem with as many contacts as none had before, and as
/// friction::Ladder does.
class Simulator {
 public:
  /// scene must outlive this object. tolerance: of friction::Limits.
  Simulator(const Scene& scene, double tolerance);

  /// Walks one trajectory. u: for each step [b, 6], N and N m.
  void run(std::int64_t steps, const Parameters<const double>& parameters, const State<const double>& first,
           Series<const double> u, const Path<double>& path, const Outcome& outcome);

 private:
  // A pair in the step that is being solved.
  struct Meeting {
    Contact<double> contact;
    Row<double> normal_row;
    Separation<double> separation;
    bool chosen;
  };
  struct Numbers;  // reads those of a step

  friction::Ladder& ladder(int contacts);
  bool find(const Numbers& read);
  Status solve(const Numbers& read, std::int64_t& iterations);
  void pose_problem(const Numbers& read);
  bool choose_more(const Numbers& read);
  void advance(const Numbers& read, const State<double>& next);

  const Scene& scene_;
  double tolerance_, threshold_ = 0;
  std::vector<std::unique_ptr<friction::Ladder>> ladders_;  // for each number of contacts
  std::vector<Matrix<double>> rotation_;                    // of each body
  std::vector<Twist<double>> before_, free_, after_;        // the velocities of each body
  std::vector<Meeting> meetings_;                           // of each pair
  std::vector<int> chosen_;                                 // pairs
  std::vector<Touch> touches_;
  Impacts impacts_;
  std::vector<double> A_, v_free_, v_;          // [n, n] and [n] with n = 6 b
  std::vector<double> J_, b_, mu_, gamma_, u_;  // of the chosen
};

}  // namespace lcp::rigid
