// The derivative of the solution map (M, q) -> (z, w) on the piece of its active set.
#pragma once

#include <vector>

#include "linalg/basis.h"

namespace lcp::solver {

/// Where the active set a = { i : z_i > 0 } and its complement b stay as they are, differentiating
/// w = M z + q with w_a = 0, z_b = 0 gives, for r = dM z + dq,
///
///   J r = (dz, dw):   M_aa dz_a = -r_a,   dz_b = 0,   dw_a = 0,   dw_b = M_ba dz_a + r_b,
///   J' (g_z, g_w) = t:   M_aa' t_a = -(g_z,a + M_ba' g_w,b),   t_b = g_w,b.
///
/// J depends on M and the active set alone, not on how z was found [CPS, 2009, sec. 7.4]. A z_j that is a degenerate
/// basic variable's round-off counts as 0: with s_i = |q_i| + sum_k |M_ik z_k|, |M_ij| z_j <= 64 epsilon s_i in every
/// row with q_i != 0 that has one, and in the rows with q_i = 0 as little beside the terms of the other variables,
/// where there are any. A pair is tied where, besides, w_j <= 64 epsilon s_j. The units of rows and columns do not
/// matter. An M_aa that is singular within the precision of its entries is replaced by its pseudo-inverse. Where z is
/// NaN (the element was not solved), the result is 0 if the argument is 0, else NaN. Allocates as Basis does.
class ActiveSet {
 public:
  /// free: the first so many pairs are always active: equations (w_i = 0), with a z_i of any sign.
  /// single_precision: whether M, z, w are floats; this sets epsilon and what counts as singular.
  /// tied_active: whether tied pairs count as w_i = 0 rather than z_i = 0.
  ActiveSet(int n, int free, bool single_precision, bool tied_active);

  /// M: n x n row-major, z, w: n. M must stay alive while the derivative is used.
  void set(const double* M, const double* z, const double* w);

  bool valid() const { return valid_; }  ///< false where z is NaN
  bool active(int i) const { return active_[i] != 0; }
  bool tied(int i) const { return tied_[i] != 0; }

  int size() const { return basis_.size(); }               ///< of the active set
  const int* indices() const { return basis_.indices(); }  ///< of the active set, ascending
  int rank() const { return basis_.rank(); }               ///< of M_aa

  void tangent(const double* r, double* dz, double* dw);          ///< (dz, dw) = J r
  void adjoint(const double* g_z, const double* g_w, double* t);  ///< t = J' (g_z, g_w)

 private:
  enum class Role : unsigned char { kUnseen, kRoundOff, kCounts };  // of an unknown in the rows with q_i != 0

  void find_active(const double* z, const double* w);

  int n_, free_;
  double epsilon_;
  bool tied_active_;
  bool valid_ = false;
  const double* M_ = nullptr;
  linalg::Basis basis_;
  std::vector<unsigned char> active_, tied_, has_q_;
  std::vector<Role> role_;
  std::vector<double> x_;
};

}  // namespace lcp::solver
