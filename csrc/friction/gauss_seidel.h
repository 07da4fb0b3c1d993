// The Gauss-Seidel method over contacts and rows: each of them in turn is solved exactly while the impulses of the
// others stay.
//
//   [JAJ] Jourdan, Alart, Jean: A Gauss-Seidel like algorithm to solve frictional contact problems, CMAME 155, 1998.
#pragma once

#include <vector>

#include "friction/impulse_problem.h"

namespace lcp::friction {

class GaussSeidel {
 public:
  explicit GaussSeidel(int contacts, int rows = 0);

  /// h: [3 c + k], improved by `sweeps` sweeps, every second one backwards.
  void sweep(const Impulses& problem, int sweeps, double* h);

 private:
  std::vector<double> u_;
};

}  // namespace lcp::friction
