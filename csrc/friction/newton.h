// Newton's method for the nonsmooth equation of Alart and Curnier, which is equivalent to Coulomb's law. That of a row
// is F = h - (the projection of h - scale u on its interval).
//
//   [ABH]  Acary, Bremond, Huber: On solving contact problems with Coulomb friction, Advanced Topics in Nonsmooth
//          Dynamics, Springer, 2018.
#pragma once

#include <cstdint>
#include <vector>

#include "friction/alart_curnier.h"
#include "friction/impulse_problem.h"
#include "linalg/lu.h"

namespace lcp::friction {

struct NewtonSettings {
  bool line_search = true;  ///< nonmonotone: the norm of F may not exceed its largest value of the last four steps
  /// Added to the diagonal of W in the Jacobian only, since W is singular where contacts are redundant.
  double regularization = 1e-6;
  int max_steps = 60;
  /// Whether the regularization holds the impulses near 0, instead of those of the last step, while the residual
  /// exceeds its square root. Redundant contacts then share a load, instead of lying on the edge of their cones.
  bool share = false;
  /// The scale of the velocities beside the impulses in F. It influences the states in which contacts near a solution
  /// are taken to be, but not the solutions.
  double scale = 1;
  int patience = 3;  ///< near the goal, the steps that may pass without progress

  static constexpr int kMemory = 4;     ///< steps that the nonmonotone line search looks back at
  static constexpr int kHalvings = 10;  ///< the most halvings of a step
  static constexpr double kDecrease = 1e-3;
  /// Within this factor of the goal, the method stops when a few steps have not come nearer.
  static constexpr double kNear = 100;
};

/// One step of the proximal point method: u = W h + q + weight (h - center), with W and q of the Impulses.
struct Proximal {
  double weight = 0;
  const double* center = nullptr;  ///< [3 c + k]; not read where the weight is 0
};

/// Allocates only in the constructor.
class Newton {
 public:
  explicit Newton(int contacts, int rows = 0);

  /// h: [3 c + k], the start on entry, and on return the step with the least residual; this residual is returned. Stops
  /// at a residual of `goal`. Adds the steps to `steps`, and stops where these reach `most`. start_mu: [c],
  /// coefficients for which h is the solution, with which the states of the contacts at the start are found; absent:
  /// the coefficients of the problem.
  double solve(const Impulses& problem, const Proximal& proximal, const NewtonSettings& settings, double goal,
               double* h, std::int64_t& steps, std::int64_t most, const double* start_mu = nullptr);

 private:
  void velocities(const Impulses& problem, const Proximal& proximal, const double* h, double* u) const;
  double evaluate(const Impulses& problem, const double* mu, double scale, const double* h, const double* u);
  double evaluate_rows(const Impulses& problem, double scale, const double* h, const double* u);
  bool step(const Impulses& problem, const Proximal& proximal, const NewtonSettings& settings, bool far);

  linalg::Lu lu_;
  std::vector<AlartCurnier> local_;  // the equations at the last point that was evaluated
  std::vector<RowState> states_;     // of the rows, there
  std::vector<double> h_, u_, next_, next_u_, best_, row_, y_;
};

}  // namespace lcp::friction
