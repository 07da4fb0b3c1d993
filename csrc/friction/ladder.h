// Solves a Problem of contact with friction: returns a verified solution, or a status that says why there is none.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "friction/gauss_seidel.h"
#include "friction/impulse_problem.h"
#include "friction/newton.h"
#include "lcp/status.h"

namespace lcp::friction {

struct Limits {
  double tolerance;             ///< of the natural residual, see Impulses::residual
  std::int64_t max_iterations;  ///< Newton steps, of all methods together
};

/// Tries one method after another. Allocates in the constructor, and where a problem is sparse or is not solved.
class Ladder {
 public:
  /// The proximal point method, whose inner problems Newton's method solves. Its weight falls by `down` where the inner
  /// problem is solved, and rises by `up` where it is not.
  struct ProximalSettings {
    int steps;
    double down, up;
    int sweeps;  ///< of the Gauss-Seidel method, before Newton's
    bool line_search;
  };

  Ladder(Eigen::Index n, Eigen::Index contacts, const Limits& limits);

  /// guess: [3 c], impulses, or nullptr. v: [n], gamma and u = J v + b: [3 c]; NaN where the status is not kSolved.
  Status solve(const Problem& problem, const double* guess, double* v, double* gamma, double* u);

  std::int64_t iterations() const { return steps_; }  ///< Newton steps spent on the last problem

 private:
  static const std::array<double (Ladder::*)(), 6> kRungs;

  double one_sweep();
  double newton();
  double proximal_point();
  double careful_proximal_point();
  double increasing_friction();
  double random_starts();

  double residual(const std::vector<double>& h);
  double proximal(const ProximalSettings& settings);
  bool infeasible();

  Eigen::Index n_;
  int contacts_;
  Limits limits_;
  double goal_;
  ImpulseProblem problem_;
  Impulses impulses_ = {};
  Newton newton_;
  GaussSeidel gauss_seidel_;
  std::vector<double> start_, h_, other_, center_, best_, u_;  // [3 c]
  std::vector<double> mu_;                                     // [c]
  std::int64_t steps_ = 0;
};

}  // namespace lcp::friction
