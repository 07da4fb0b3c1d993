// The derivative of the solution map (M, q) -> (z, w) for a fixed active set.
#pragma once

#include <cstdint>
#include <vector>

#include "linalg/basis.h"

namespace lcp::solver {

/// The linear maps J and J' of the derivative. Where the active set a = { i : z_i > 0 } and its complement b are
/// constant, differentiating w = M z + q with w_a = 0, z_b = 0 gives, for r = dM z + dq,
///
///   J r = (dz, dw):   M_aa dz_a = -r_a,   dz_b = 0,   dw_a = 0,   dw_b = M_ba dz_a + r_b,
///   J' (g_z, g_w) = t:   M_aa' t_a = -(g_z,a + M_ba' g_w,b),   t_b = g_w,b.
///
/// J depends on M and the active set alone, not on how z was found [CPS, 2009, sec. 7.4]. The active set follows from
/// the states of the pairs (pair_states.h), which the forward solve found. An M_aa that is singular within the
/// precision of its entries is replaced by its pseudo-inverse. Where there is no solution, the result is 0 if the
/// argument is 0, else NaN. Allocates as linalg::Basis does.
class ActiveSet {
 public:
  /// single_precision: whether the entries of M are floats; this sets what counts as singular.
  /// tied_active: whether tied pairs count as w_i = 0 rather than z_i = 0.
  ActiveSet(int n, bool single_precision, bool tied_active);

  /// M: n x n row-major; states: n, see PairState. M must stay alive while the derivative is used.
  void set(const double* M, const std::int8_t* states);

  bool valid() const { return valid_; }  ///< false where there is no solution
  bool active(int i) const { return active_[i] != 0; }

  int size() const { return basis_.size(); }               ///< the number of active pairs
  const int* indices() const { return basis_.indices(); }  ///< the active pairs, ascending
  int rank() { return basis_.rank(); }                     ///< the rank of M_aa

  void tangent(const double* r, double* dz, double* dw);          ///< (dz, dw) = J r
  void adjoint(const double* g_z, const double* g_w, double* t);  ///< t = J' (g_z, g_w)

 private:
  int n_;
  bool tied_active_;
  bool valid_ = false;
  const double* M_ = nullptr;
  linalg::Basis basis_;
  std::vector<unsigned char> active_;
  std::vector<double> x_;
};

}  // namespace lcp::solver
