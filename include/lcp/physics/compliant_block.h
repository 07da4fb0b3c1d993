// A rectangular block in a vertical plane above compliant, level ground: coordinates (x, z, theta) of its centre, m and
// rad, z upwards and theta from x to z. Its four corners are the contacts.
#pragma once

#include <cstdint>
#include <optional>

#include "lcp/export.h"
#include "lcp/feedback.h"
#include "lcp/physics/compliant_ground.h"

namespace lcp::physics {

struct LCP_API CompliantBlock {
  at::Tensor mass;     ///< kg, > 0, spread evenly
  at::Tensor width;    ///< m, > 0
  at::Tensor height;   ///< m, > 0
  double dt;           ///< s, > 0
  at::Tensor gravity;  ///< m/s^2, >= 0
  CompliantGround ground;

  /// Float64 parameters [] of the given values. Throws c10::Error where one is out of its range.
  static CompliantBlock of(double mass, double width, double height, double dt, double gravity,
                           const CompliantGround& ground);
};

/// A = diag(m, m, m (width^2 + height^2) / 12). For each corner J has the rows (1, 0, -r_z), 0 and (0, 1, r_x), where r
/// is the arm from the centre to the corner before the step. The corners that are below for theta = 0 come first.
///   state: before the step. u: [..., 3], N, N and N m, on the centre.
LCP_API CompliantProblem contact_problem(const CompliantState& state, const at::Tensor& u, const CompliantBlock& block);

/// The LCP of the dual of this step: min gamma' (W + R) gamma / 2 + r' gamma over the cones, which are polyhedral in
/// the plane. Here W = J A^-1 J' and r = J v_free - v_hat. With gamma = E z, where the columns of E are the edges (-mu,
/// 0, 1) and (mu, 0, 1) of each contact's cone, M = E' (W + R) E and q = E' r.
LCP_API Problem dual_problem(const CompliantState& state, const at::Tensor& u, const CompliantBlock& block);

/// The step on rigid ground in the formulation of Stewart and Trinkle (1996): with the tangents' and normals' rows T
/// and N of J, z = (lambda_n, lambda_plus, lambda_minus, gamma), [4] each, w_n = N v_next + gap / dt.
LCP_API Problem rigid_problem(const CompliantState& state, const at::Tensor& u, const CompliantBlock& block);

/// z: [..., 8] of dual_problem, or [..., 16] of rigid_problem.
LCP_API CompliantStep read_dual(const CompliantState& state, const at::Tensor& u, const at::Tensor& z,
                                const CompliantBlock& block);
LCP_API CompliantStep read_rigid(const CompliantState& state, const at::Tensor& u, const at::Tensor& z,
                                 const CompliantBlock& block);

/// The heights of the corners above the ground, m: [..., 4].
LCP_API at::Tensor gaps(const CompliantState& state, const CompliantBlock& block);

/// One step of each element of the batch.
LCP_API CompliantSolution step(const CompliantState& state, const at::Tensor& u, const CompliantBlock& block,
                               const ContactOptions& options = {});

/// Many steps.
///   u: [steps, ..., 3], N, N and N m. feedback: of the state, with K [..., 3, 6].
/// Returns tensors [steps, ...]. Where a step fails, all that follow are NaN.
LCP_API CompliantSolution simulate(const CompliantState& state, const at::Tensor& u, const CompliantBlock& block,
                                   const ContactOptions& options = {},
                                   const std::optional<Feedback<CompliantState>>& feedback = std::nullopt);

/// Certifies the gradient of a rollout that `simulate` returned for the same arguments: steps are tied and kinked where
/// the margin of lcp::certify_contact is at most `tolerance`.
LCP_API RolloutCertificate certify_rollout(const CompliantState& state, const at::Tensor& u,
                                           const CompliantBlock& block, const CompliantSolution& rollout,
                                           double tolerance = 1e-12);

}  // namespace lcp::physics
