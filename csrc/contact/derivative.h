// The derivative of the solution of a Problem, by the implicit function theorem.
//
// With F(v) = A (v - v_free) - J' P(y), y = R^-1 (v_hat - J v), and H = A + J' K J, K = P'(y) R^-1, at the solution
//
//   dv = -H^-1 dF,   dF = dA (v - v_free) - A dv_free - dJ' gamma - J' (P'(y) dy + dP),
//   R dy = dv_hat - dJ v - y dR,   dP = the change of P with R and mu for the same y.
#pragma once

#include <vector>

#include "contact/cone.h"
#include "contact/problem.h"
#include "contact/system.h"

namespace lcp::contact {

/// The incoming gradients of reverse mode, with respect to v, y and gamma.
struct Gradient {
  const double* v;      ///< [n]
  const double* y;      ///< [3 c]
  const double* gamma;  ///< [3 c]
};

/// The gradients with respect to the data of the problem. Those of A and J are outer products of l = H^-1 (g_v - J'
/// (R^-1 g_y + K g_gamma)) and c = R^-1 g_y + K (J l + g_gamma). The gradient with respect to A is the symmetric part
/// of -l (v - v_free)', and the gradient with respect to J is gamma l' - c v'.
struct Adjoint {
  double* l;       ///< [n], l itself
  double* v_free;  ///< [n], A l
  double* v_hat;   ///< [3 c], c
  double* R;       ///< [3 c], equal for both tangents of a contact, since the problem depends on their mean
  double* mu;      ///< [c]
  double* gamma;   ///< [3 c], P(y)
};

/// The derivatives of the data in a direction: dp = A dv_free - dA (v - v_free) + dJ' gamma, ds = dv_hat - dJ v, and
/// the derivatives of R and mu.
struct Tangent {
  const double* p;   ///< [n]
  const double* s;   ///< [3 c]
  const double* R;   ///< [3 c]
  const double* mu;  ///< [c]
};

/// Allocates only in the constructor, unless the problem is sparse (AnySystem).
class Derivative {
 public:
  Derivative(Eigen::Index n, Eigen::Index contacts);

  /// v: [n] and y: [3 c], the solution. problem.v_free and problem.v_hat are not read. Where v or y has a NaN, because
  /// the problem was not solved, all results are 0 if g is 0, else NaN.
  ///   same: whether the problem and the solution are those of the last call, so that its matrices are used again.
  void adjoint(const Problem& problem, const double* v, const double* y, const Gradient& g, const Adjoint& result,
               bool same = false);

  /// dv [n] and dgamma [3 c] for the derivatives d of the data. The remarks on the adjoint hold here, too.
  void tangent(const Problem& problem, const double* v, const double* y, const Tangent& d, double* dv, double* dgamma,
               bool same = false);

 private:
  bool linearize(const Problem& problem, const double* v, const double* y);

  Eigen::Index n_, contacts_;
  AnySystem systems_;
  System* system_ = nullptr;  // the system of the problem that was linearized
  bool is_linear_ = false;    // whether H is factored for this problem
  Vector l_, work_;           // [n]
  Vector Jl_, pull_;          // [3 c]
  std::vector<Projection> at_;
  std::vector<Eigen::Matrix3d> K_;
};

/// x = (A + J' blkdiag(K) J)^-1 g, the building block of derivatives of the derivative.
class Inverse {
 public:
  Inverse(Eigen::Index n, Eigen::Index contacts);

  /// K: [3 c, 3], c symmetric blocks. x: [n]. If g is 0, x is 0; otherwise x is NaN where g has a NaN or where the
  /// matrix is not positive definite.
  void operator()(const double* A, const double* J, const double* K, const double* g, double* x);

 private:
  Eigen::Index n_;
  AnySystem systems_;
  Vector x_;  // [n]
  std::vector<Eigen::Matrix3d> K_;
};

}  // namespace lcp::contact
