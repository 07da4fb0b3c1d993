// The types that the systems of this folder share: the problem of a step, its solution, and the certificate of the
// gradient of a rollout.
//
// Each system is a struct of parameters: tensors [...] of any batch shape, which broadcast against the state and the
// inputs. Functions compute in the dtype of the state and are differentiable in the state, the inputs and every
// parameter, except where a result is said to have no gradient.
#pragma once

#include <ATen/core/Tensor.h>

namespace lcp::physics {

/// w = M z + q, 0 <= z perp w >= 0, for lcp::solve.
struct Problem {
  at::Tensor M;  ///< [..., n, n]; it has only the batch dimensions that it depends on
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
  Step step;     ///< NaN where the status is not 0
  at::Tensor z;  ///< [..., n], the LCP's unknowns
  at::Tensor
      residual;  ///< [...], max_i |min(z_i, (M z + q)_i)|, and max_i |A x + B z + p|_i of a mixed problem; no gradient
  at::Tensor status;  ///< [...], int8, see lcp::Status
};

/// The numbers of steps of each trajectory that have no solution, or no ordinary gradient: int64, [...]. The
/// certificate has no gradient itself.
///
/// The gradient may be exact in spite of a tied pair, z_i = w_i = 0. A block that sticks strictly within its friction
/// cone has tied pairs in every formulation with a slack velocity, but its velocity is 0 in a neighbourhood. A step is
/// kinked where a tie can change the next state: between sticking and sliding, at the first contact, or where the force
/// of a polygonal cone changes from one vertex to the next. At a kink the state has one-sided derivatives only, and the
/// gradient is the one that SolveOptions::ties selects.
struct RolloutCertificate {
  at::Tensor unsolved;  ///< steps whose status is not 0
  at::Tensor tied;      ///< steps in whose LCP a pair is tied
  at::Tensor kinked;    ///< tied steps in which the tie can change the next state
};

}  // namespace lcp::physics
