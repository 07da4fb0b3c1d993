// The one-sided directional derivative, exact at ties, and the distance to the next change of the active set.
#pragma once

#include <cstdint>
#include <vector>

#include "lcp/status.h"
#include "solver/active_set.h"
#include "solver/pair_states.h"

namespace lcp::solver {

/// The derivative along (dM, dq). With r = dM z + dq, the active pairs keep dw = 0, and the inactive pairs keep dz = 0.
/// The tied pairs obey a complementarity condition of their own:
///
///   dw = M dz + r,   0 <= dz_i  perp  dw_i >= 0   for i tied,
///
/// a mixed LCP on the critical cone [CPS, 2009, sec. 7.4]. Allocates where there are ties, and as ActiveSet does.
class DirectionalDerivative {
 public:
  DirectionalDerivative(int n, bool single_precision);

  /// M: n x n row-major, q, z: n, z a solution. They must stay alive while this is used.
  void set(const double* M, const double* q, const double* z);

  /// dM: n x n row-major, dq, dz, dw: n. The status is that of the mixed LCP, or kBadInput where z or the direction has
  /// a NaN; dz and dw are NaN unless it is kSolved.
  Status operator()(const double* dM, const double* dq, double* dz, double* dw);

  /// The largest t up to which the active set at q + t dq stays the same: the nearest value at which an active z_i or
  /// an inactive w_i reaches 0. It is 0 where a tied w_i falls at once, infinity where nothing reaches 0, and NaN where
  /// z has a NaN.
  double radius(const double* dq);

 private:
  bool tied(int i) const { return states_[i] == PairState::kTied; }
  Status solve_ties(double* dz, double* dw);

  int n_;
  bool single_precision_;
  const double* M_ = nullptr;
  const double* z_ = nullptr;
  PairStates pair_states_;
  ActiveSet active_set_;
  std::vector<std::int8_t> states_;
  std::vector<double> w_, r_, dz_, dw_;
};

}  // namespace lcp::solver
