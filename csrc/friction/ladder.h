// Solves a Problem of contact with friction: returns a verified solution, or a status that says why there is none.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "friction/active_set.h"
#include "friction/attempt.h"
#include "friction/gauss_seidel.h"
#include "friction/impulse_problem.h"
#include "friction/interior_point.h"
#include "friction/newton.h"
#include "friction/pyramid.h"
#include "lcp/status.h"

namespace lcp::friction {

struct Limits {
  double tolerance;             ///< bounds Impulses::residual, or ImpulseProblem::rounding where that is larger
  std::int64_t max_iterations;  ///< Newton steps, of all methods together
};

/// Tries one method after another. Allocates in the constructor, where a problem is sparse, and where it needs more
/// than the first methods: Newton's method and, with few contacts, the first proximal point method.
class Ladder {
 public:
  Ladder(Eigen::Index n, Eigen::Index contacts, const Limits& limits, Eigen::Index rows = 0);

  /// guess: [3 c + k], impulses, or nullptr. v: [n], gamma and u = J v + b: [3 c + k]; NaN where the status is not
  /// kSolved.
  Status solve(const Problem& problem, const double* guess, double* v, double* gamma, double* u);

  std::int64_t iterations() const { return steps_; }  ///< Newton steps spent on the last problem
  const char* method() const { return method_; }      ///< the method that solved it, see docs/rigid_contact.md

 private:
  // The settings of sweeps and of the proximal point method that follows. Newton's method solves the inner problems
  // until their residual is `accuracy` times the last residual of the problem itself. The weight falls by `down` where
  // this succeeds, and rises by `up` where it fails.
  struct ProximalSettings {
    int sweeps, steps;
    double weight;  // the weight of the first step
    double down, up, accuracy;
  };
  static const Attempt kManySweeps, kRandomAttempts[2];
  static const ProximalSettings kFast, kCareful;
  static const InteriorSettings kInterior, kInteriorSmooth, kInteriorElsewhere[3];

  template <class Accepted>
  Status search(const Accepted& accepted);
  // The methods, which leave their best point in h_; the first two start at start_.
  void attempt(const Attempt& attempt);
  void proximal(const ProximalSettings& settings);
  void interior(const InteriorSettings& settings);
  void pyramids(int passes);
  template <class Accepted>
  bool lift(const Accepted& accepted);  // returns whether its point is accepted

  double residual(const std::vector<double>& h);
  bool infeasible();

  Eigen::Index n_;
  int contacts_, rows_;
  Limits limits_;
  double tolerance_ = 0, goal_ = 0;  // the tolerance and the goal for the problem
  ImpulseProblem problem_;
  Impulses impulses_ = {};
  Newton newton_;
  GaussSeidel gauss_seidel_;
  // The slower methods, made when they are first needed.
  std::optional<Pyramid> pyramid_;
  std::optional<InteriorPoint> interior_;
  std::optional<ActiveSet> active_set_;
  bool interior_is_set_ = false;
  Problem given_ = {};
  std::vector<double> start_, h_, center_, best_, u_;  // [3 c + k]
  std::vector<double> limited_mu_, start_mu_;          // [c]
  std::int64_t steps_ = 0;
  const char* method_ = nullptr;
};

}  // namespace lcp::friction
