// Newton's method for a nonsmooth equation that is equivalent to Coulomb's law.
//
//   [AC]   Alart, Curnier: A mixed formulation for frictional contact problems, CMAME 92, 1991.
//   [JAJ]  Jourdan, Alart, Jean: A Gauss-Seidel like algorithm to solve frictional contact problems, CMAME 155, 1998.
//   [ABH]  Acary, Bremond, Huber: On solving contact problems with Coulomb friction, Advanced Topics in Nonsmooth
//          Dynamics, Springer, 2018.
#pragma once

#include <vector>

#include "friction/impulse_problem.h"
#include "linalg/lu.h"

namespace lcp::friction {

/// F_n = h_n - max(0, h_n - u_n), F_t = h_t - D(h_t - u_t), D the projection on the disk of radius mu max(0, r).
enum class Equation {
  kJeanMoreau,    ///< r = h_n [JAJ]
  kAlartCurnier,  ///< r = h_n - u_n [AC]
};

struct NewtonSettings {
  Equation equation = Equation::kJeanMoreau;
  bool line_search = true;  ///< nonmonotone: the norm of F may not exceed its largest value of the last four steps
  /// Added to the diagonal of W in the Jacobian only, since W is singular where contacts are redundant.
  double regularization = 1e-6;
  int max_steps = 60;
};

/// u = W h + q + weight (h - center), W and q those of the Impulses: one step of the proximal point method.
struct Proximal {
  double weight = 0;
  const double* center = nullptr;  ///< [3 c]; not read where the weight is 0
};

/// Allocates only in the constructor.
class Newton {
 public:
  explicit Newton(int contacts);

  /// h: [3 c], the start on entry, and on return the step with the least residual, which is returned. Stops at a
  /// residual of `goal`. Adds the steps to `steps`, and stops where these reach `most`.
  double solve(const Impulses& problem, const Proximal& proximal, const NewtonSettings& settings, double goal,
               double* h, std::int64_t& steps, std::int64_t most);

 private:
  // C du + D dh = -F of one contact; where C = 0, D = I.
  struct Linear {
    double C[3][3], D[3][3];
    bool separate;
  };

  void velocities(const Impulses& problem, const Proximal& proximal, const double* h, double* u) const;
  double evaluate(const Impulses& problem, Equation equation, const double* h, const double* u, bool linearize);
  bool step(const Impulses& problem, double regularization);

  linalg::Lu lu_;
  std::vector<Linear> linear_;
  std::vector<double> F_, u_, step_, change_, trial_, trial_u_, best_, x_;
  std::vector<int> touching_;  // the contacts that are not separate
};

}  // namespace lcp::friction
