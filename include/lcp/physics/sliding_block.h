// A block that slides on a line under a force and dry friction, stepped in time as an LCP.
//
//   m (v_next - v) / dt = u + f,   |f| <= mu m g,   f = -mu m g sign(v_next) where v_next != 0
//
//   [Notes] Pfrommer: LCP Notes, 2019. The equation numbers are its sections.
//   [ST]    Stewart, Trinkle: An implicit time-stepping scheme for rigid body dynamics, IJNME 39, 1996.
//
// All functions broadcast their arguments and parameters over batch dimensions [...], keep the dtype of v, and are
// differentiable in all of them.
#pragma once

#include <ATen/core/Tensor.h>

namespace lcp::physics {

/// Each [...], broadcastable against v and u; a plain number serves as a parameter shared by the batch.
struct SlidingBlock {
  at::Tensor mass;     ///< kg, > 0
  at::Tensor dt;       ///< s, > 0
  at::Tensor mu;       ///< friction coefficient, >= 0
  at::Tensor gravity;  ///< m/s^2, >= 0

  /// Shared parameters of the given numbers, float64. Throws c10::Error where one is out of its range.
  static SlidingBlock of(double mass, double dt, double mu, double gravity);

  /// mu m g [N], the largest friction force.
  at::Tensor max_friction() const;
};

/// What one step ends with; every member has the shape of v and u, broadcast.
struct SlidingBlockStep {
  at::Tensor v_next;        ///< m/s
  at::Tensor lambda_plus;   ///< N, friction force along +x
  at::Tensor lambda_minus;  ///< N, friction force along -x
  at::Tensor gamma;         ///< m/s, the slack velocity: |v_next| where it is unique
};

/// The data of w = M z + q.
struct SlidingBlockProblem {
  at::Tensor M;  ///< [..., n, n]; its batch dimensions are those of the parameters alone
  at::Tensor q;  ///< [..., n]
};

/// Exact Coulomb friction: v* = v + dt u / m, v_next = sign(v*) max(|v*| - dt mu g, 0). The forces are those of the
/// minimal split: friction f = m (v_next - v*) / dt as lambda_plus = max(f, 0), lambda_minus = max(-f, 0).
///   v: [...], m/s. u: [...], N.
SlidingBlockStep coulomb_step(const at::Tensor& v, const at::Tensor& u, const SlidingBlock& block);

/// The direct formulation [Notes, 2.2]: z = (v_next+, v_next-), w = (mu m g - lambda_minus, mu m g - lambda_plus),
/// n = 2, M = (m / dt) I. One of the forces is fictitious, min(mu m g, -A) with A = m v / dt + u the force that would
/// stop the block: it is negative and makes both rows affine.
SlidingBlockProblem direct_problem(const at::Tensor& v, const at::Tensor& u, const SlidingBlock& block);

/// z, w: [..., 2], a solution of direct_problem.
SlidingBlockStep read_direct(const at::Tensor& z, const at::Tensor& w, const SlidingBlock& block);

/// The traditional formulation [Notes, 2.6; ST]: z = (lambda_plus, lambda_minus, gamma), n = 3. M is positive
/// semidefinite; v_next is unique, and so is gamma for mu > 0, but sticking friction has many splits.
SlidingBlockProblem traditional_problem(const at::Tensor& v, const at::Tensor& u, const SlidingBlock& block);

/// z, w: [..., 3], a solution of traditional_problem for v and u.
///
/// v_next = (w_0 - w_1) / 2, since w = (gamma + v_next, gamma - v_next, ...), and exactly 0 where gamma = 0: a block
/// that sticks rests, instead of moving by the round-off of v + dt (u + f) / m.
SlidingBlockStep read_traditional(const at::Tensor& z, const at::Tensor& w);

enum class SlidingBlockFormulation { kDirect, kTraditional };

/// The result of stepping by lcp::solve.
struct SlidingBlockSolution {
  SlidingBlockStep step;
  at::Tensor residual;  ///< [...]: the LCP's max_i |min(z_i, (M z + q)_i)|
  at::Tensor status;    ///< [...], int8, see lcp::Status; NaN in `step` where it is not 0
};

/// One step of each element of the batch.
SlidingBlockSolution step(const at::Tensor& v, const at::Tensor& u, const SlidingBlock& block,
                          SlidingBlockFormulation formulation);

/// Many steps, each from the last one's v_next.
///   v: [...], m/s, before the first step. u: [steps, ...], N.
/// Returns tensors [steps, ...].
SlidingBlockSolution simulate(const at::Tensor& v, const at::Tensor& u, const SlidingBlock& block,
                              SlidingBlockFormulation formulation);

}  // namespace lcp::physics
