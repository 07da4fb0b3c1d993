// A point mass in a vertical plane that falls on the ground, with contact, friction and restitution, stepped in time as
// an LCP of impulses.
//
//   m (v_next - v) = dt (u + (0, -m g)) + n lambda_n + D (lambda_plus, lambda_minus)
//   0 <= n'v_next + c                                 perp  lambda_n                   >= 0
//   0 <= gamma + D'v_next                             perp  (lambda_plus, lambda_minus) >= 0
//   0 <= mu lambda_n - lambda_plus - lambda_minus     perp  gamma                      >= 0
//
// with n = (0, 1), D = [(1, 0) (-1, 0)], and c as Stabilization says.
//
//   [Notes] Pfrommer: LCP Notes, 2019 (unpublished; docs/systems.md), section 2.7, with the signs of q and the
//           clamp of c corrected.
//   [ST]    Stewart, Trinkle: An implicit time-stepping scheme for rigid body dynamics, IJNME 39, 1996.
//   [BP]    de Avila Belbute-Peres et al.: End-to-end differentiable physics for learning and control, NeurIPS 2018.
#pragma once

#include <cstdint>
#include <optional>

#include "lcp/export.h"
#include "lcp/feedback.h"
#include "lcp/physics/problem.h"
#include "lcp/solve.h"

namespace lcp::physics {

struct LCP_API PointMass {
  at::Tensor mass;         ///< kg, > 0
  at::Tensor dt;           ///< s, > 0
  at::Tensor mu;           ///< friction coefficient, >= 0
  at::Tensor gravity;      ///< m/s^2, >= 0
  at::Tensor restitution;  ///< 0 (no rebound) to 1 (the mass rebounds with its speed); used at velocity level

  /// Float64 parameters [] of the given values. Throws c10::Error where one is out of its range.
  static PointMass of(double mass, double dt, double mu, double gravity, double restitution = 0);
};

/// Position and velocity of the mass; each [..., 2], (x, y).
struct PointMassState {
  at::Tensor position;  ///< m, y above the ground
  at::Tensor velocity;  ///< m/s
};

/// The result of a step.
struct PointMassStep {
  PointMassState next;
  at::Tensor lambda_n;      ///< [...], N s, contact impulse
  at::Tensor lambda_plus;   ///< [...], N s, friction impulse along +x
  at::Tensor lambda_minus;  ///< [...], N s, friction impulse along -x
  at::Tensor gamma;         ///< [...], m/s, the slack velocity: |v_x| where it is unique
};

using PointMassSolution = Solution<PointMassStep>;

/// The LCP that a step solves. kStewartTrinkle: the problem above without its velocities, by lcp::solve. kBelbutePeres:
/// the form of [BP] with its velocities, by lcp::solve_mixed. With the default method, kBelbutePeres is solved without
/// its velocities, too, which is the same problem.
enum class PointMassFormulation { kStewartTrinkle, kBelbutePeres };

/// The value of c. kPosition: c = y / dt; the mass does not penetrate, and does not rebound. kVelocity: c = restitution
/// min(v_y, 0) where y <= 0; no contact where y > 0. The mass may end up below the ground by the distance of one step,
/// and stays there.
enum class Stabilization { kPosition, kVelocity };

struct PointMassOptions {
  PointMassFormulation formulation = PointMassFormulation::kStewartTrinkle;
  Stabilization stabilization = Stabilization::kPosition;
};

/// The exact step, in closed form: v_y_next = max(v_y*, -c), lambda_n = m (v_y_next - v_y*), and v_x_next is v_x* less
/// friction of at most mu lambda_n, where v* = v + dt (u / m + (0, -g)).
///   state: before the step. u: [..., 2], N.
LCP_API PointMassStep exact_step(const PointMassState& state, const at::Tensor& u, const PointMass& mass,
                                 Stabilization stabilization = Stabilization::kPosition);

/// x = v_next, z = (lambda_n, lambda_plus, lambda_minus, gamma), k = 2, n = 4 [Notes, 2.7].
LCP_API MixedProblem stewart_trinkle_problem(const PointMassState& state, const at::Tensor& u, const PointMass& mass,
                                             Stabilization stabilization = Stabilization::kPosition);

/// The Stewart-Trinkle problem with x eliminated. M is copositive and a P0-matrix, but for mu > 0 not positive
/// semidefinite. A solution exists by Lemke's theorem for copositive matrices, and v_next is unique.
LCP_API Problem reduced_problem(const PointMassState& state, const at::Tensor& u, const PointMass& mass,
                                Stabilization stabilization = Stabilization::kPosition);

/// The form of [BP], Q x + G'z + p = 0, 0 <= h - G x + F z perp z >= 0, with x = -v_next and z as above.
LCP_API MixedProblem belbute_peres_problem(const PointMassState& state, const at::Tensor& u, const PointMass& mass,
                                           Stabilization stabilization = Stabilization::kPosition);

/// z, w: [..., 4], a solution of any of the three problems. The velocity of a mass at rest is exactly 0, and so is y of
/// a mass in contact at position level. While the mass sticks, the derivative of v_x is 0 or, with options.kappa > 0,
/// the derivative of the central path.
///   options: those with which the problem was solved.
LCP_API PointMassStep read_point_mass(const PointMassState& state, const at::Tensor& u, const at::Tensor& z,
                                      const at::Tensor& w, const PointMass& mass,
                                      Stabilization stabilization = Stabilization::kPosition,
                                      const SolveOptions& options = {});

/// One step of each element of the batch.
/// Throws c10::Error where a restitution is given at position level, which has none.
LCP_API PointMassSolution step(const PointMassState& state, const at::Tensor& u, const PointMass& mass,
                               const PointMassOptions& options = {}, const SolveOptions& solve_options = {});

/// Many steps.
///   u: [steps, ..., 2], N. feedback: of the state, with K [..., 2, 4].
/// Returns tensors [steps, ...].
LCP_API PointMassSolution simulate(const PointMassState& state, const at::Tensor& u, const PointMass& mass,
                                   const PointMassOptions& options = {}, const SolveOptions& solve_options = {},
                                   const std::optional<Feedback<PointMassState>>& feedback = std::nullopt);

/// Certifies the gradient of a rollout that `simulate` returned for the same arguments; `tolerance` as in lcp::certify.
/// Both formulations are certified as the reduced problem. At velocity level, a rollout is a discontinuous function of
/// its start where the step of the first contact changes. The certificate does not show this.
LCP_API RolloutCertificate certify_rollout(const PointMassState& state, const at::Tensor& u, const PointMass& mass,
                                           const PointMassOptions& options, const PointMassSolution& rollout,
                                           std::optional<double> tolerance = {});

}  // namespace lcp::physics
