// The point of a smooth path that leads to the solutions of contact with friction. For kappa > 0 each contact has
//
//   h_n u_n = kappa,   h_t = -mu^2 h_n u_t / sqrt(u_n^2 + mu^2 |u_t|^2)
//
// so that all contacts push a little, also those with a gap, and friction depends smoothly on the velocity. As kappa
// goes to 0, a contact that takes off has h_n = kappa / u_n -> 0. A contact that slides has u_n = kappa / h_n -> 0 and
// h_t -> -mu h_n u_t / |u_t|, and a contact that sticks has u -> 0.
#pragma once

#include <vector>

#include "friction/impulse_problem.h"
#include "linalg/lu.h"

namespace lcp::friction {

/// C du + D dh = E dmu - F for one contact on the path, in any units in which u and h obey the law.
struct SmoothLaw {
  double C[3][3] = {}, D[3][3] = {}, E[3] = {}, F[3] = {};

  SmoothLaw(const double* h, const double* u, double mu, double kappa);
};

/// Allocates only in the constructor.
class SmoothPath {
 public:
  explicit SmoothPath(int contacts);

  /// h, u: [3 c], a solution on entry and the point of the path near it on return. kappa: in the units of h u. False
  /// where Newton's method finds no such point.
  bool point(const Impulses& problem, double kappa, double* h, double* u);

 private:
  /// fall: the ratio of the kappa that a step aims at to the mean of h_n u_n.
  bool newton(const Impulses& problem, double kappa, double fall);
  double evaluate(const Impulses& problem, double kappa);

  linalg::Lu lu_;
  std::vector<double> h_, u_, step_h_, step_u_, gap_;  // [3 c]; gap_ = W h + q - u
};

}  // namespace lcp::friction
