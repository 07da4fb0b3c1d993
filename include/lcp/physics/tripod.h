// A block that slides and turns on a plane on three point supports, with dry friction at each, stepped in time as an
// LCP.
//
//   M (nu_next - nu) = dt (W lambda + u),   M = diag(m, m, I),   W_i,j = (d_j, (R(theta) r_i) x d_j)
//   0 <= lambda_i,j   perp  sigma_i + d_j.v_i               >= 0
//   0 <= sigma_i      perp  mu N_i - sum_j lambda_i,j       >= 0
//
// for supports i, their velocities v_i at the end of the step, and the directions d_j of friction_cone.h. R(theta) is
// taken at the start of the step.
//
//   [ST] Stewart, Trinkle: An implicit time-stepping scheme for rigid body dynamics, IJNME 39, 1996.
#pragma once

#include <cstdint>
#include <optional>

#include "lcp/export.h"
#include "lcp/feedback.h"
#include "lcp/physics/problem.h"
#include "lcp/solve.h"

namespace lcp::physics {

struct LCP_API Tripod {
  at::Tensor mass;      ///< [...], kg, > 0
  at::Tensor inertia;   ///< [...], kg m^2 about the centre of mass, > 0
  at::Tensor dt;        ///< [...], s, > 0
  at::Tensor mu;        ///< [...], friction coefficient, >= 0
  at::Tensor gravity;   ///< [...], m/s^2, >= 0
  at::Tensor supports;  ///< [..., 3, 2], m, r_i from the centre of mass, in the body's frame; no three on a line
  /// [...], m, height of the centre of mass above the plane, >= 0. With this lever arm, friction shifts the loads.
  at::Tensor com_height;

  /// Float64 parameters [] of the given values. The supports are (0.045, 0), (-0.03, 0.035),
  /// (-0.03, -0.035). Throws c10::Error where a number is out of its range.
  static Tripod of(double mass, double inertia, double dt, double mu, double gravity, double com_height = 0);
};

/// Pose and velocity of the block; each [..., 3].
struct TripodState {
  at::Tensor pose;      ///< x, y [m], theta [rad]
  at::Tensor velocity;  ///< v_x, v_y [m/s], omega [rad/s]
};

/// The result of a step.
struct TripodStep {
  TripodState next;
  at::Tensor friction;  ///< [..., 3, 2], N, on each support
  at::Tensor normal;    ///< [..., 3], N, on each support, >= 0; the step of a block that would tip has no solution
  at::Tensor slip;      ///< [..., 3], m/s, sigma: the speed of each support, measured by the polygon; 0 where it sticks
};

using TripodSolution = Solution<TripodStep>;

/// N_i at rest, [..., 3], N: sum_i N_i = m g, sum_i N_i r_i = 0. Negative where the centre of mass is not above the
/// triangle of the supports. Throws c10::Error where the supports lie on a line.
LCP_API at::Tensor static_normals(const Tripod& tripod);

/// The step with isotropic friction in place of polygons, with relative errors of about 1e-8: the minimiser over
/// nu_next of |nu_next - nu*|_M^2 / 2 + dt mu sum_i N_i |v_i| with nu* = nu + dt M^-1 u, found by Newton's method. For
/// com_height > 0 it iterates until the loads N_i agree with the friction forces. Float64; not differentiable.
///   u: [..., 3], N, N, N m.
LCP_API TripodState exact_step(const TripodState& state, const at::Tensor& u, const Tripod& tripod);

/// z = (lambda_1, lambda_2, lambda_3, sigma), 3 n + 3 unknowns for n directions,
/// M = [[dt W'M^-1 W, E], [mu dN/dlambda - E', 0]], q = (W'nu*, mu N). With com_height = 0, M is positive
/// semidefinite and nu_next is unique. For com_height > 0 the shift of the loads enters M, and neither is guaranteed.
///   u: [..., 3], N, N, N m.
LCP_API Problem polyhedral_problem(const TripodState& state, const at::Tensor& u, const Tripod& tripod,
                                   std::int64_t directions);

/// z: [..., 3 n + 3], a solution of polyhedral_problem. nu_next is exactly 0 where two or all supports stick. The
/// derivative of that 0 is 0 or, with options.kappa > 0, the derivative of the central path. A support sticks if its
/// slip is at most 64 eps times the largest speed that a support has without friction. The forces on a block at rest
/// are not unique, so that z may have the round-off of the slip.
///   options: those with which the problem was solved.
LCP_API TripodStep read_polyhedral(const TripodState& state, const at::Tensor& u, const at::Tensor& z,
                                   const Tripod& tripod, const SolveOptions& options = {});

/// One step of each element of the batch. Unless kappa > 0, ties = "active" replaces that of `options`, since a support
/// that sticks does not move in directions without a force either. Throws c10::Error where
/// the centre of mass is not above the triangle of the supports, or these lie on a line.
LCP_API TripodSolution step(const TripodState& state, const at::Tensor& u, const Tripod& tripod,
                            std::int64_t directions = 8, const SolveOptions& options = {});

/// Many steps.
///   u: [steps, ..., 3], N, N, N m. feedback: of the state, with K [..., 3, 6].
/// Returns tensors [steps, ...].
LCP_API TripodSolution simulate(const TripodState& state, const at::Tensor& u, const Tripod& tripod,
                                std::int64_t directions = 8, const SolveOptions& options = {},
                                const std::optional<Feedback<TripodState>>& feedback = std::nullopt);

/// Certifies the gradient of a rollout that `simulate` returned for the same arguments; `tolerance` as in lcp::certify.
LCP_API RolloutCertificate certify_rollout(const TripodState& state, const at::Tensor& u, const Tripod& tripod,
                                           std::int64_t directions, const TripodSolution& rollout,
                                           std::optional<double> tolerance = {});

}  // namespace lcp::physics
