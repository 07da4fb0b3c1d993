// The bilevel loss of learning an LCP from motion alone: how far, at least, the data are from some forces that the
// learned f and G allow.
//
//   [Notes]   Pfrommer: LCP Notes, 2019, section 3.2.4.
//   [Danskin] Danskin: The theory of max-min, with applications, SIAM J. Appl. Math. 14, 1966.
#pragma once

#include <ATen/core/Tensor.h>

namespace lcp::learning {

struct BilevelWeights {
  double prediction = 1;       ///< a1 > 0
  double complementarity = 1;  ///< a2 >= 0
  double violation = 10;       ///< a3 > 0, per unit of s; without a meaning where `hard`
  bool hard = false;           ///< G lambda + f >= 0 without exception: s = 0
};

struct BilevelLoss {
  at::Tensor value;       ///< [...], V; NaN, with the gradient 0, where not solved
  at::Tensor lambda;      ///< [..., n], the forces that the data are explained with
  at::Tensor violation;   ///< [..., n], s
  at::Tensor multiplier;  ///< [..., n], nu of G lambda + f + s >= 0
  at::Tensor status;      ///< [...], int8, see lcp::Status
};

/// The value of the inner problem [Notes, 3.2.4],
///
///   V = min a1 |beta - B lambda|^2 + a2 lambda'(G lambda + f) + a3 e's
///       over lambda >= 0, s >= 0, G lambda + f + s >= 0,
///
/// solved by lcp::solve as the LCP of its optimality conditions, in (lambda, s, nu) or, where hard, (lambda, nu).
/// Its derivative is that of the objective less nu'(G lambda + f + s), the unknowns held [Danskin]:
///
///   dV/df = a2 lambda - nu,  dV/dG = dV/df lambda',  dV/dbeta = 2 a1 (beta - B lambda) = r,  dV/dB = -r lambda'
///
/// and where lambda or nu are not unique it is that of those found. The second derivative is that of the solution.
///
/// The problem is convex if a1 B'B + a2 (G + G') / 2 is positive semidefinite; otherwise V belongs to a stationary
/// point. It has no solution, status 2, where its objective is unbounded below, as it is for a friction cone with f_3 <
/// 0, and, where hard, where no lambda >= 0 has G lambda + f >= 0.
///
/// The truth, in which lambda* explains the data with V = 0, is a minimiser only if a3 >= a2 max_i lambda*_i: its
/// multiplier is a2 lambda*, which a3 bounds.
///   G: [..., n, n]. f: [..., n]. B: [..., k, n], what a force does to the prediction. beta: [..., k], what forces must
/// explain. All of one dtype; each broadcasts.
/// Throws c10::Error where a shape does not fit or a weight is out of its range.
BilevelLoss bilevel_loss(const at::Tensor& G, const at::Tensor& f, const at::Tensor& B, const at::Tensor& beta,
                         const BilevelWeights& weights);

}  // namespace lcp::learning
