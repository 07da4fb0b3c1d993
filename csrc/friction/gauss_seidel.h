// The Gauss-Seidel method over contacts: one after the other is solved exactly while the others' impulses stay.
//
//   [JAJ] Jourdan, Alart, Jean: A Gauss-Seidel like algorithm to solve frictional contact problems, CMAME 155, 1998.
#pragma once

#include <vector>

#include "friction/impulse_problem.h"

namespace lcp::friction {

/// The impulse g of a single contact with u = W g + q; always exists for a positive definite W.
///   W: 3 x 3, row-major, rows `stride` numbers apart. q: 3.
void solve_one_contact(const double* W, int stride, const double* q, double mu, double* g);

class GaussSeidel {
 public:
  explicit GaussSeidel(int contacts);

  /// h: [3 c], improved by `sweeps` sweeps, every second one backwards.
  void sweep(const Impulses& problem, int sweeps, double* h);

 private:
  std::vector<double> u_;
};

}  // namespace lcp::friction
