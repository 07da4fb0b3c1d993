// The derivative of a solution of problem.h, by the implicit function theorem.
//
// With F(v) = A (v - v_free) - J' P(y), y = R^-1 (v_hat - J v), and H = A + J' K J, K = P'(y) R^-1, at the solution
//
//   dv = -H^-1 dF,   dF = dA (v - v_free) - A dv_free - dJ' gamma - J' (P'(y) dy + dP),
//   R dy = dv_hat - dJ v - y dR,   dP = what R and mu change of P for one y.
#pragma once

#include <vector>

#include "contact/cone.h"
#include "contact/problem.h"
#include "contact/system.h"

namespace lcp::contact {

/// Gradients of v, y and gamma in the sense of reverse mode.
struct Gradient {
  const double* v;      ///< [n]
  const double* y;      ///< [3 c]
  const double* gamma;  ///< [3 c]
};

/// What they are for the problem's numbers: with l = H^-1 (g_v - J' (R^-1 g_y + K g_gamma)) and
/// c = R^-1 g_y + K (J l + g_gamma), that of A is the symmetric part of -l (v - v_free)', and that of J is
/// gamma l' - c v'.
struct Adjoint {
  double* l;       ///< [n]
  double* v_free;  ///< [n], A l
  double* v_hat;   ///< [3 c], c
  double* R;       ///< [3 c], the same for both tangents of a contact, whose mean counts
  double* mu;      ///< [c]
  double* gamma;   ///< [3 c], P(y)
};

/// Allocates only in the constructor, for what DenseSystem serves.
class Derivative {
 public:
  Derivative(Eigen::Index n, Eigen::Index contacts);

  /// At a solution v [n] with y [3 c]; v_free and v_hat of the problem are not looked at. Where v or y has a NaN, and
  /// is no solution, all is 0 if g is 0, else NaN.
  void adjoint(const Problem& problem, const double* v, const double* y, const Gradient& g, const Adjoint& result);

 private:
  Eigen::Index n_, contacts_;
  AnySystem systems_;
  Vector l_, work_;   // [n]
  Vector Jl_, pull_;  // [3 c]
  std::vector<Projection> at_;
  std::vector<Eigen::Matrix3d> K_;
};

/// x = (A + J' blkdiag(K) J)^-1 g, of which the derivative's derivatives are made.
class Inverse {
 public:
  Inverse(Eigen::Index n, Eigen::Index contacts);

  /// K: [3 c, 3], c symmetric blocks. x: [n], 0 where g is 0; else NaN where g has a NaN or the matrix is not positive
  /// definite.
  void operator()(const double* A, const double* J, const double* K, const double* g, double* x);

 private:
  Eigen::Index n_;
  AnySystem systems_;
  Vector x_;  // [n]
  std::vector<Eigen::Matrix3d> K_;
};

}  // namespace lcp::contact
