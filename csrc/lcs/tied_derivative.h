// Adjoints of the LCPs of a step, with the rule for tied pairs.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "batch/batch_derivative.h"
#include "lcp/ties.h"

namespace lcp::lcs {

/// J' of solver/active_set.h where tied pairs count as z_i = 0, as w_i = 0, or as the mean of both. T is the type of
/// the numbers in memory, double or float. Allocates in the constructor, for more elements than ever before, and as
/// ActiveSet does.
template <class T>
class TiedDerivative {
 public:
  TiedDerivative(int n, Ties ties);

  /// t = J' (g_z, g_w). M, g_z, g_w: `count` elements; states, t: count x n.
  void adjoint(std::int64_t count, batch::BatchView<T> M, const std::int8_t* states, const T* g_z, const T* g_w, T* t);

 private:
  int n_;
  batch::BatchDerivative<T> derivative_;
  std::optional<batch::BatchDerivative<T>> other_piece_;  // the piece with the tied pairs active, for Ties::kMidpoint
  std::vector<T> other_t_;
};

}  // namespace lcp::lcs
