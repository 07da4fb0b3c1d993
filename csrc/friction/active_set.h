// Newton's method for contacts that are kept in their states: apart, stick or slide.
#pragma once

#include <cstdint>
#include <vector>

#include "friction/impulse_problem.h"
#include "friction/linear_law.h"
#include "linalg/lu.h"

namespace lcp::friction {

/// Newton's method for problems with large coefficients of friction that Newton, for the equation of Alart and Curnier,
/// does not solve. An example is a box that lands on a face with mu = 1e6. Its contacts pull against each other with
/// impulses 1e2 to 1e6 times as large as those that stop the box. They slip at 1e-6 of the velocity of the box. This
/// class differs from Newton in three points:
///
/// - The unknown impulse of a contact that slides is its friction h_t, and h_n = |h_t| / mu. As mu grows, h_t
///   converges. The equations are u_n = 0 and s' u_t = 0, where s is orthogonal to h_t.
/// - A contact changes its state only where a step violates a condition of this state. No projection compares impulses
///   with velocities, which can be 1e12 times smaller.
/// - Nothing is added to the diagonal of W. Full pivoting finds the rank of the equations instead. A motion against the
///   large impulses has an eigenvalue of W near the square of the slope of the box, 1e-8 or less.
///
/// Allocates only in the constructor.
class ActiveSet {
 public:
  explicit ActiveSet(int contacts);

  /// h: [3 c]. On entry it is the solution for the coefficients of friction start_mu, [c], which gives the first
  /// states. On return it is the step with the least residual; this residual is returned. Stops at a residual of
  /// `goal`. Adds the steps to `steps`, and stops where these reach `most`. Reads given_mu, not mu, of the problem.
  double solve(const Impulses& problem, const double* start_mu, double goal, double* h, std::int64_t& steps,
               std::int64_t most);

  /// Tries all 3^c - 1 sets of states in which a contact touches. Each set takes a few steps, in which the states stay.
  /// The arguments are those of solve, but h is not read.
  double enumerate(const Impulses& problem, double goal, double* h, std::int64_t& steps, std::int64_t most);

 private:
  /// The linear equations of a Newton step for one contact.
  struct Contact {
    State state;
    int unknowns;           // the number of unknowns, and of equations
    double impulse[3][3];   // the change of h per unit of each unknown
    double equation[3][3];  // the direction of the velocity that each equation sets to 0
    double across;          // the derivative of s' u_t in the second unknown of a slide, where u is constant
  };

  void find_states(const double* mu, double goal, const double* h);
  void linearize(const Impulses& problem, bool with_friction, double* h, const double* u);
  bool step(const Impulses& problem, bool with_friction);
  bool change_states(const Impulses& problem, double goal);
  bool release(const Impulses& problem);
  void equations(const double* u, double* out) const;
  void add(const double* y, double length);

  linalg::Lu lu_;
  bool singular_ = false;
  std::vector<Contact> contacts_;
  std::vector<double> h_, u_, right_, y_;
};

}  // namespace lcp::friction
