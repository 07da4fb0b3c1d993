// The bilevel loss of learning an LCP from motion alone: the least error with which forces that the learned f and G
// allow explain the motion.
//
//   [Notes]   Pfrommer: LCP Notes, 2019 (unpublished; docs/systems.md), section 3.2.4.
//   [Danskin] Danskin: The theory of max-min, with applications, SIAM J. Appl. Math. 14, 1966.
#pragma once

#include <ATen/core/Tensor.h>

#include "lcp/export.h"

namespace lcp::learning {

struct BilevelWeights {
  double prediction = 1;       ///< a1 > 0
  double complementarity = 1;  ///< a2 >= 0
  double violation = 10;       ///< a3 > 0, per unit of s; not used where `hard` is true
  bool hard = false;           ///< requires G lambda + f >= 0 exactly, that is s = 0
};

struct BilevelLoss {
  at::Tensor value;       ///< [...], V; NaN, with the gradient 0, where not solved
  at::Tensor lambda;      ///< [..., n], the minimising forces
  at::Tensor violation;   ///< [..., n], s
  at::Tensor multiplier;  ///< [..., n], nu, the multiplier of G lambda + f + s >= 0
  at::Tensor status;      ///< [...], int8, see lcp::Status
};

/// The value of the inner problem [Notes, 3.2.4],
///
///   V = min a1 |beta - B lambda|^2 + a2 lambda'(G lambda + f) + a3 e's
///       over lambda >= 0, s >= 0, G lambda + f + s >= 0,
///
/// solved by lcp::solve as the LCP of its optimality conditions, in (lambda, s, nu) or, where hard, (lambda, nu).
/// Its derivative is that of the Lagrangian, objective - nu'(G lambda + f + s), for fixed unknowns [Danskin]:
///
///   dV/df = a2 lambda - nu,  dV/dG = dV/df lambda',  dV/dbeta = 2 a1 (beta - B lambda) = r,  dV/dB = -r lambda'
///
/// where r stands for dV/dbeta. If lambda or nu is not unique, those found are used. The second derivative uses the
/// derivative of the solution, and so does the first derivative in forward mode and under torch.func.
///
/// The problem is convex if a1 B'B + a2 (G + G') / 2 is positive semidefinite; otherwise V belongs to a stationary
/// point. The status is kInfeasible where the objective is unbounded below, as it is for a friction cone with f_3 < 0,
/// and, if hard, where no lambda >= 0 has G lambda + f >= 0.
///
/// At the true G and f the true forces lambda* give V = 0, with the multiplier a2 lambda*. No multiplier exceeds a3, so
/// that the true parameters are a minimiser only if a3 >= a2 max_i lambda*_i.
///   G: [..., n, n]. f: [..., n]. B: [..., k, n], the effect of the forces on the prediction. beta: [..., k], the part
///   of the motion that the forces must explain. All of one dtype; their batch dimensions broadcast.
/// Throws c10::Error where a shape does not fit or a weight is out of its range.
LCP_API BilevelLoss bilevel_loss(const at::Tensor& G, const at::Tensor& f, const at::Tensor& B, const at::Tensor& beta,
                                 const BilevelWeights& weights);

}  // namespace lcp::learning
