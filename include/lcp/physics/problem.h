// What the systems of this folder have in common: the problem of a step, its solution, and what a rollout's gradient is
// worth.
//
// Each system is a struct of parameters [...], tensors of any batch shape that broadcast against its state and inputs;
// a plain number is shared by the batch. Functions compute in the dtype of the state and are differentiable in the
// state, the inputs and every parameter, but for what is said to be a report.
#pragma once

#include <ATen/core/Tensor.h>

namespace lcp::physics {

/// w = M z + q, 0 <= z perp w >= 0, for lcp::solve.
struct Problem {
  at::Tensor M;  ///< [..., n, n]; its batch dimensions are those that it depends on
  at::Tensor q;  ///< [..., n]
};

/// 0 = A x + B z + p, w = C x + M z + q, 0 <= z perp w >= 0, for lcp::solve_mixed.
struct MixedProblem {
  at::Tensor A;  ///< [..., k, k]
  at::Tensor B;  ///< [..., k, n]
  at::Tensor C;  ///< [..., n, k]
  at::Tensor M;  ///< [..., n, n]
  at::Tensor p;  ///< [..., k]
  at::Tensor q;  ///< [..., n]
};

/// One step of each element of a batch, [...], or many, [steps, ...].
template <class Step>
struct Solution {
  Step step;            ///< NaN where the status is not 0
  at::Tensor z;         ///< [..., n], the LCP's unknowns
  at::Tensor residual;  ///< [...], max_i |min(z_i, (M z + q)_i)|, and |A x + B z + p| of equations: a report
  at::Tensor status;    ///< [...], int8, see lcp::Status
};

/// What the gradient of a rollout is worth: a report, int64, one number for each trajectory, [...].
///
/// A tied pair, z_i = w_i = 0, does not by itself make a gradient doubtful: a block that sticks within its friction
/// cone has tied pairs in every formulation with a slack velocity, and yet its velocity is 0 nearby and the gradient
/// exact. A step is kinked where the tie can change the next state: at the edge of sticking, at first touch, where a
/// polygonal cone changes the vertex. There the state has one-sided derivatives only, and the gradient is the one that
/// SolveOptions::ties chooses.
struct RolloutCertificate {
  at::Tensor unsolved;  ///< steps whose status is not 0
  at::Tensor tied;      ///< steps in whose LCP a pair is tied
  at::Tensor kinked;    ///< of those, the steps where the tie can change the next state
};

}  // namespace lcp::physics
