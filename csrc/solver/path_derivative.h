// The derivative of a point of the central path.
#pragma once

#include <vector>

#include "linalg/lu.h"

namespace lcp::solver {

/// The linear map K of (r, s) to (x, y) with
///
///   a_i x_i + b_i y_i = s_i,   y = M x + r,
///
/// and its transpose K'. For z_i w_i = kappa, w = M z + q, it is the derivative d(z, w) = K (dM z + dq, dkappa) with
/// a = w, b = z; a = 0, b = 1 makes row i an equation. Where a has a NaN (there is no such point), the result is 0 if
/// the argument is 0, else NaN. Allocates only in the constructor.
class PathDerivative {
 public:
  explicit PathDerivative(int n);

  /// M: n x n row-major, a, b: n. They must stay alive while the derivative is used.
  void set(const double* M, const double* a, const double* b);

  void tangent(const double* r, const double* s, double* x, double* y);          ///< (x, y) = K (r, s)
  void adjoint(const double* g_x, const double* g_y, double* t_r, double* t_s);  ///< (t_r, t_s) = K' (g_x, g_y)

 private:
  int n_;
  bool valid_ = false;
  const double* M_ = nullptr;
  const double* b_ = nullptr;
  linalg::Lu lu_;
  std::vector<double> unit_;
};

}  // namespace lcp::solver
