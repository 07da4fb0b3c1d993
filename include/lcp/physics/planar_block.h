// A point that slides on a plane under a force and isotropic dry friction, stepped in time as an LCP.
//
//   m (v_next - v) / dt = u + f,   |f| <= mu m g,   f = -mu m g v_next / |v_next| where v_next != 0
//
//   [Notes] Pfrommer: LCP Notes, 2019 (unpublished; docs/systems.md), section 2.4.
//   [ST]    Stewart, Trinkle: An implicit time-stepping scheme for rigid body dynamics, IJNME 39, 1996.
//
// Below, v* = v + dt u / m is the velocity without friction, and S = dt mu g the largest reduction of v* by friction.
// dir(a) is a / |a|, and d_1 .. d_n are the directions of friction_cone.h.
#pragma once

#include <cstdint>
#include <optional>

#include "lcp/export.h"
#include "lcp/feedback.h"
#include "lcp/physics/problem.h"
#include "lcp/solve.h"

namespace lcp::physics {

struct LCP_API PlanarBlock {
  at::Tensor mass;     ///< kg, > 0
  at::Tensor dt;       ///< s, > 0
  at::Tensor mu;       ///< friction coefficient, >= 0
  at::Tensor gravity;  ///< m/s^2, >= 0

  /// Float64 parameters [] of the given values. Throws c10::Error where one is out of its range.
  static PlanarBlock of(double mass, double dt, double mu, double gravity);
};

/// The result of a step; each member [..., 2].
struct PlanarBlockStep {
  at::Tensor v_next;  ///< m/s
  at::Tensor force;   ///< N, friction
};

enum class PlanarBlockFormulation { kExactDirection, kFixedPoint, kPolyhedral };

struct PlanarBlockOptions {
  PlanarBlockFormulation formulation = PlanarBlockFormulation::kExactDirection;

  /// n, even, at least 4.
  std::int64_t directions = 8;

  /// Fixed-point scheme: the largest number of passes, each of which solves an LCP; >= 1.
  std::int64_t max_passes = 30;

  /// Fixed-point scheme: uses t <- dir(v_next + S t) instead of dir(v_next).
  bool relaxed = false;

  /// Fixed-point scheme: it has converged where t changes by at most this. Absent: 1e-12 in float64, 1e-5 in
  /// float32.
  std::optional<double> direction_tolerance;
};

struct PlanarBlockSolution : Solution<PlanarBlockStep> {
  at::Tensor direction;  ///< [..., 2], t of the last pass; 0 in the polyhedral formulation, which assumes no direction
  at::Tensor passes;     ///< [...], int64, LCPs solved for the step, without a gradient
  at::Tensor converged;  ///< [...], bool, false where the fixed-point scheme ran out of passes, without a gradient
};

/// Exact friction: v_next = v* max(1 - S / |v*|, 0).
///   v: [..., 2], m/s. u: [..., 2], N.
LCP_API PlanarBlockStep exact_step(const at::Tensor& v, const at::Tensor& u, const PlanarBlock& block);

/// The LCP for a sliding direction t: w_i = (m / dt) (z_i - d_i.v* + S max(d_i.t, 0)), M = (m / dt) I. The solution is
/// unique; z_i is the part of v_next along d_i. With t = dir(v*) the result is exact for every n, since sum_i
/// max(d_i.a, 0) d_i = (n / 4) a.
///   t: [..., 2], of length 1; or 0 for a block that sticks, for which max(d_i.t, 0) is replaced by 1.
LCP_API Problem direction_problem(const at::Tensor& v, const at::Tensor& u, const at::Tensor& t,
                                  const PlanarBlock& block, std::int64_t directions);

/// z: [..., n], a solution of direction_problem for v and u: v_next = (4 / n) sum_i z_i d_i. Where the block sticks, z
/// = 0 and S > 0, and the derivative of v_next is 0. With options.kappa > 0 it is the derivative of the central path.
///   options: those with which the problem was solved.
LCP_API PlanarBlockStep read_direction(const at::Tensor& v, const at::Tensor& u, const at::Tensor& z,
                                       const PlanarBlock& block, const SolveOptions& options = {});

/// The polyhedral friction cone [ST]: z = (beta, gamma), w = (D'v_next + gamma e, mu m g - e'beta), n + 1 unknowns, M =
/// [[(dt / m) D'D, e], [-e', 0]], positive semidefinite; v_next is unique, beta is not. Friction D beta is within a
/// polygon inscribed in the disk. Its size may be as small as cos(pi / n) times the exact one, and its direction is one
/// of the n directions or between two neighbours.
LCP_API Problem polyhedral_problem(const at::Tensor& v, const at::Tensor& u, const PlanarBlock& block,
                                   std::int64_t directions);

/// z, w: [..., n + 1], a solution of polyhedral_problem. v_next = (2 / n) sum_i w_i d_i, exactly 0 where gamma = 0. The
/// derivative of that 0 is 0 or, with options.kappa > 0, the derivative of the central path.
///   options: those with which the problem was solved.
LCP_API PlanarBlockStep read_polyhedral(const at::Tensor& z, const at::Tensor& w, const SolveOptions& options = {});

/// The polyhedral friction cone of any directions, of any lengths: friction is within mu m g times their convex hull.
///   D: [..., 2, n], as friction_directions or aligned_directions give them, or learned.
/// Throws c10::Error where D has another shape.
LCP_API Problem polyhedral_problem(const at::Tensor& v, const at::Tensor& u, const PlanarBlock& block,
                                   const at::Tensor& D);

/// z, w: [..., n + 1], a solution of polyhedral_problem for the other arguments. v_next = v* + dt D beta / m, exactly 0
/// with the derivative 0 where gamma = 0 and D spans the plane.
LCP_API PlanarBlockStep read_polyhedral(const at::Tensor& z, const at::Tensor& w, const at::Tensor& v,
                                        const at::Tensor& u, const PlanarBlock& block, const at::Tensor& D);

/// One step of each element of the batch.
///
/// kExactDirection: t = dir(v*). kFixedPoint: t = dir(v), or dir(v*) where v = 0, then t <- dir(v_next) [Notes, 2.4]. A
/// pass multiplies a small error of t by S / (|v*| - S), so that the scheme converges locally only where |v*| > 2 S.
/// The relaxed scheme converges wherever the block slides. Where the scheme has converged to a sliding block, the
/// derivative is that of the fixed point; elsewhere, and with max_passes = 1, it is that of the passes made.
///
/// Unless kappa > 0, these two formulations use ties = "midpoint" instead of that of `solve_options`: where v_next is
/// perpendicular to d_i, the pairs of d_i and -d_i are tied, but v_next is smooth, with this derivative.
///
/// Throws c10::Error for options out of their range.
LCP_API PlanarBlockSolution step(const at::Tensor& v, const at::Tensor& u, const PlanarBlock& block,
                                 const PlanarBlockOptions& options = {}, const SolveOptions& solve_options = {});

/// Many steps, each of which begins with v_next of the step before.
///   v: [..., 2], m/s, before the first step. u: [steps, ..., 2], N. feedback: of v, with K [..., 2, 2].
/// Returns tensors [steps, ...].
LCP_API PlanarBlockSolution simulate(const at::Tensor& v, const at::Tensor& u, const PlanarBlock& block,
                                     const PlanarBlockOptions& options = {}, const SolveOptions& solve_options = {},
                                     const std::optional<Feedback<at::Tensor>>& feedback = std::nullopt);

/// Certifies the gradient of a rollout that `simulate` returned for the same arguments; `tolerance` as in lcp::certify.
/// Where the fixed-point scheme has not converged, only the last pass is certified.
LCP_API RolloutCertificate certify_rollout(const at::Tensor& v, const at::Tensor& u, const PlanarBlock& block,
                                           const PlanarBlockOptions& options, const PlanarBlockSolution& rollout,
                                           std::optional<double> tolerance = {});

}  // namespace lcp::physics
