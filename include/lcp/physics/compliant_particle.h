// A point mass above compliant, level ground: coordinates (x, y, z) with z upwards, m, and one contact.
#pragma once

#include <cstdint>
#include <optional>

#include "lcp/export.h"
#include "lcp/feedback.h"
#include "lcp/physics/compliant_ground.h"

namespace lcp::physics {

struct LCP_API CompliantParticle {
  at::Tensor mass;     ///< kg, > 0
  double dt;           ///< s, > 0
  at::Tensor gravity;  ///< m/s^2, >= 0
  CompliantGround ground;

  /// Float64 parameters [] of the given values. Throws c10::Error where one is out of its range.
  static CompliantParticle of(double mass, double dt, double gravity, const CompliantGround& ground);
};

/// A = m I, J = I, and the gap z.
///   state: before the step. u: [..., 3], N.
LCP_API CompliantProblem contact_problem(const CompliantState& state, const at::Tensor& u,
                                         const CompliantParticle& particle);

/// The step in closed form: gamma projects (R + 1 / m)^-1 (v_hat - v_free) on the cone in the norm of R + 1 / m.
LCP_API CompliantStep exact_step(const CompliantState& state, const at::Tensor& u, const CompliantParticle& particle);

/// The step on rigid ground, in closed form: v_z >= -z / dt, and friction of at most mu times the normal impulse.
LCP_API CompliantStep rigid_step(const CompliantState& state, const at::Tensor& u, const CompliantParticle& particle);

/// The height z above the ground, m: [..., 1].
LCP_API at::Tensor gaps(const CompliantState& state, const CompliantParticle& particle);

/// One step of each element of the batch.
LCP_API CompliantSolution step(const CompliantState& state, const at::Tensor& u, const CompliantParticle& particle,
                               const ContactOptions& options = {});

/// Many steps.
///   u: [steps, ..., 3], N. feedback: of the state, with K [..., 3, 6].
/// Returns tensors [steps, ...]. Where a step fails, all that follow are NaN.
LCP_API CompliantSolution simulate(const CompliantState& state, const at::Tensor& u, const CompliantParticle& particle,
                                   const ContactOptions& options = {},
                                   const std::optional<Feedback<CompliantState>>& feedback = std::nullopt);

/// Certifies the gradient of a rollout that `simulate` returned for the same arguments: steps are tied and kinked where
/// the margin of lcp::certify_contact is at most `tolerance`.
LCP_API RolloutCertificate certify_rollout(const CompliantState& state, const at::Tensor& u,
                                           const CompliantParticle& particle, const CompliantSolution& rollout,
                                           double tolerance = 1e-12);

}  // namespace lcp::physics
