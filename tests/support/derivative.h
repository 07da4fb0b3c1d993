// The derivative at a given solution, whose complementary basis is found as the forward solve finds it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "solver/active_set.h"
#include "solver/pair_states.h"

namespace lcp::testing {

class Derivative : public solver::ActiveSet {
 public:
  Derivative(int n, int num_equations, bool single_precision, bool tied_active)
      : ActiveSet(n, single_precision, tied_active), find_(n, num_equations, single_precision), q_(n), states_(n) {}

  /// M: n x n row-major; q, z, w: n.
  void set(const double* M, const double* q, const double* z, const double* w) {
    find_.find(M, q, z, w, states_.data());
    ActiveSet::set(M, states_.data());
  }

  /// Finds the active set of the problem whose solution is z and w, which has q = w - M z.
  void set(const double* M, const double* z, const double* w) {
    const std::size_t n = q_.size();
    for (std::size_t i = 0; i < n; ++i) {
      q_[i] = w[i];
      for (std::size_t j = 0; j < n; ++j) q_[i] -= M[i * n + j] * z[j];
    }
    set(M, q_.data(), z, w);
  }

  bool tied(int i) const { return states_[i] == solver::PairState::kTied; }

 private:
  solver::PairStates find_;
  std::vector<double> q_;
  std::vector<std::int8_t> states_;
};

}  // namespace lcp::testing
