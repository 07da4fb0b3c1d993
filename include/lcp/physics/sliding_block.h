// A block that slides on a line under a force and dry friction, stepped in time as an LCP.
//
//   m (v_next - v) / dt = u + f,   |f| <= mu m g,   f = -mu m g sign(v_next) where v_next != 0
//
//   [Notes] Pfrommer: LCP Notes, 2019 (unpublished; docs/systems.md). The equation numbers are its sections.
//   [ST]    Stewart, Trinkle: An implicit time-stepping scheme for rigid body dynamics, IJNME 39, 1996.
//
// In what follows c = dt / m, v* = v + c u is the velocity without friction, and F = mu m g.
#pragma once

#include <cstdint>
#include <optional>

#include "lcp/export.h"
#include "lcp/feedback.h"
#include "lcp/physics/problem.h"
#include "lcp/solve.h"

namespace lcp::physics {

struct LCP_API SlidingBlock {
  at::Tensor mass;     ///< kg, > 0
  at::Tensor dt;       ///< s, > 0
  at::Tensor mu;       ///< friction coefficient, >= 0
  at::Tensor gravity;  ///< m/s^2, >= 0

  /// Float64 parameters [] of the given values. Throws c10::Error where one is out of its range.
  static SlidingBlock of(double mass, double dt, double mu, double gravity);

  /// F = mu m g [N], the largest friction force.
  at::Tensor max_friction() const;
};

/// The result of a step; every member has the shape to which v, u and the parameters broadcast.
struct SlidingBlockStep {
  at::Tensor v_next;        ///< m/s
  at::Tensor lambda_plus;   ///< N, friction force along +x
  at::Tensor lambda_minus;  ///< N, friction force along -x
  at::Tensor gamma;         ///< m/s, the slack velocity: |v_next| where it is unique
};

using SlidingBlockSolution = Solution<SlidingBlockStep>;

/// The LCP that a step solves. For each formulation, a function below builds the LCP and another reads its solution.
/// Rollouts of kMixed by the default method are those of kTraditional, which is the same problem without its velocity.
///   v: [...], m/s. u: [...], N.
enum class SlidingBlockFormulation { kForward, kDirect, kTraditional, kMixed };

/// Exact Coulomb friction: v_next = sign(v*) max(|v*| - dt mu g, 0). The friction f = m (v_next - v*) / dt is split
/// minimally, lambda_plus = max(f, 0) and lambda_minus = max(-f, 0).
LCP_API SlidingBlockStep exact_step(const at::Tensor& v, const at::Tensor& u, const SlidingBlock& block);

/// Motion to the right only [Notes, 2.1]: z = v_next, w = F - lambda_minus, n = 1, M = m / dt. It is
/// friction where v* >= 0; elsewhere a force that pushes the block to the right (lambda_minus < 0) keeps it in its
/// place.
LCP_API Problem forward_problem(const at::Tensor& v, const at::Tensor& u, const SlidingBlock& block);

/// z, w: [..., 1], a solution of forward_problem.
LCP_API SlidingBlockStep read_forward(const at::Tensor& z, const at::Tensor& w, const SlidingBlock& block);

/// The direct formulation [Notes, 2.2]: z = (v_next+, v_next-), w = (F - lambda_minus, F - lambda_plus), n = 2,
/// M = (m / dt) I; the solution is unique. With A = m v / dt + u, the force that would stop the block, lambda_minus is
/// min(F, A) and lambda_plus is min(F, -A). The smaller of the two is fictitious: it is negative, and makes both rows
/// affine.
LCP_API Problem direct_problem(const at::Tensor& v, const at::Tensor& u, const SlidingBlock& block);

/// z, w: [..., 2], a solution of direct_problem.
LCP_API SlidingBlockStep read_direct(const at::Tensor& z, const at::Tensor& w, const SlidingBlock& block);

/// The traditional formulation [Notes, 2.6; ST]: z = (lambda_plus, lambda_minus, gamma),
/// w = (gamma + v_next, gamma - v_next, F - lambda_plus - lambda_minus), n = 3. M is positive semidefinite,
/// but no P-matrix; v_next is unique, and so is gamma for mu > 0. While the block sticks, the split of the friction
/// force into lambda_plus and lambda_minus is not unique.
LCP_API Problem traditional_problem(const at::Tensor& v, const at::Tensor& u, const SlidingBlock& block);

/// z, w: [..., 3], a solution of traditional_problem or mixed_problem.
///
/// v_next = (w_0 - w_1) / 2. Where gamma = 0 the block sticks, and v_next is exactly 0 instead of the round-off of v +
/// c (u + f). The derivative of that 0 is 0 or, with options.kappa > 0, the derivative of the central path.
///   options: those with which the problem was solved.
LCP_API SlidingBlockStep read_traditional(const at::Tensor& z, const at::Tensor& w, const SolveOptions& options = {});

/// The traditional formulation with the velocity as an unknown, x = v_next, k = 1 [Notes, 2.6.1, with corrected signs
/// in the first row].
LCP_API MixedProblem mixed_problem(const at::Tensor& v, const at::Tensor& u, const SlidingBlock& block);

/// One step of each element of the batch.
LCP_API SlidingBlockSolution step(const at::Tensor& v, const at::Tensor& u, const SlidingBlock& block,
                                  SlidingBlockFormulation formulation, const SolveOptions& options = {});

/// Many steps, each of which begins with v_next of the step before.
///   v: [...], m/s, before the first step. u: [steps, ...], N. feedback: of v, with K [..., 1, 1].
/// Returns tensors [steps, ...].
LCP_API SlidingBlockSolution simulate(const at::Tensor& v, const at::Tensor& u, const SlidingBlock& block,
                                      SlidingBlockFormulation formulation, const SolveOptions& options = {},
                                      const std::optional<Feedback<at::Tensor>>& feedback = std::nullopt);

/// Certifies the gradient of a rollout that `simulate` returned for the same arguments; `tolerance` as in lcp::certify.
/// A mixed problem is certified as the traditional one that it reduces to.
LCP_API RolloutCertificate certify_rollout(const at::Tensor& v, const at::Tensor& u, const SlidingBlock& block,
                                           SlidingBlockFormulation formulation, const SlidingBlockSolution& rollout,
                                           std::optional<double> tolerance = {});

}  // namespace lcp::physics
