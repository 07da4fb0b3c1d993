// The complementary basis of a solution in memory.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "linalg/basis.h"
#include "solver/find_pair_states.h"

namespace lcp::solver {

/// The states of the pairs, by find_pair_states. Where a size is doubtful, z is refined first, by its basis and
/// residuals in twice the precision. Allocates in the constructor, and where sizes are doubtful.
class PairStates {
 public:
  /// num_equations: the first so many pairs are equations w_i = 0 with a z_i of any sign.
  /// single_precision: whether M, q, z and w are floats; this sets epsilon.
  PairStates(int n, int num_equations, bool single_precision);

  /// M: n x n row-major, q, z, w: n, where w = max(0, M z + q) is 0 wherever z > 0. states: n. kUnsolved where z has a
  /// NaN.
  void find(const double* M, const double* q, const double* z, const double* w, std::int8_t* states);

 private:
  bool decide(const double* M, const double* q, const double* z, const double* w, std::int8_t* states);
  bool refine(const double* M, const double* q);
  bool is_near(const double* M, const double* q, const double* z) const;

  int n_, num_equations_;
  double epsilon_;
  std::vector<double> numbers_;
  std::vector<double> z_, w_;  // refined
  std::optional<linalg::Basis> basis_;
  std::vector<unsigned char> flags_;
  std::vector<int> support_;  // the j with z_j != 0
};

}  // namespace lcp::solver
