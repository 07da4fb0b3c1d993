// The accuracy of a solution, and how well its derivative is defined.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "solver/active_set.h"
#include "solver/pair_states.h"

namespace lcp::solver {

/// With w = M z + q and s_i = |q_i| + sum_j |M_ij z_j|, the size of z_j is max_i |M_ij z_j| / s_i, and the size of w_i
/// is |w_i| / s_i. Sizes are in [0, 1] and do not change with the units of rows and columns. Both are 0 where
/// PairStates says that the pair is tied. Allocates.
class Certifier {
 public:
  Certifier(int n, bool single_precision);

  /// M: n x n row-major, q, z: n. tolerance: pairs whose sizes are both at most this are tied; absent: as PairStates
  /// decides. Where z, M or q has a NaN, all numbers are NaN, the rank is 0 and nothing is tied.
  void set(const double* M, const double* q, const double* z, const std::optional<double>& tolerance);

  double residual() const { return residual_; }  ///< max_i |min(z_i, w_i)|
  double margin() const { return margin_; }      ///< min_i max(size of z_i, size of w_i), 0 at ties; infinity for n = 0
  /// The condition number of M_aa in the 2-norm: infinity where M_aa is singular, 1 where a is empty.
  double condition() const { return condition_; }
  int rank() const { return rank_; }  ///< the rank of M_aa
  bool tied(int i) const { return tied_[i] != 0; }

 private:
  int n_;
  bool single_precision_;
  PairStates pair_states_;
  ActiveSet active_set_;
  std::vector<std::int8_t> states_;
  double residual_ = 0, margin_ = 0, condition_ = 0;
  int rank_ = 0;
  std::vector<double> w_, scale_, size_;
  std::vector<unsigned char> tied_;
};

}  // namespace lcp::solver
