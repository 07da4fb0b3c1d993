// Rollouts of rigid bodies in one call of lcp::_rollout. Tests call what is exported.
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "lcp/export.h"
#include "lcp/physics/rigid_scene.h"
#include "ops/composite.h"
#include "ops/rollout/step_text.h"

namespace lcp::physics {

LCP_ENUMERATORS(RigidFormulation, "exact_cone", "polyhedral", "compliant")
LCP_MEMBERS_BY(
    RigidOptions,
    "formulation, substeps, bounce_threshold, stabilization, directions, angle, kappa, ties, tolerance, sigma, beta",
    [](auto& x) {
      return std::tie(x.formulation, x.substeps, x.bounce_threshold, x.stabilization, x.directions.count,
                      x.directions.angle, x.kappa, x.ties, x.tolerance, x.regularization.sigma, x.regularization.beta);
    })

/// The ends of all steps, [steps, batch..., ...], NaN from the first on that was not solved.
struct RigidSteps {
  RigidState next;
  at::Tensor gamma;       ///< [steps, ..., 3 c]
  at::Tensor status;      ///< [steps, ...], int8
  at::Tensor iterations;  ///< [steps, ...], int64
};

/// The same in operators of tensors: how higher derivatives are found, and those of smoothed contact.
///   u: [steps, ..., B, 6]; options.substeps does not count.
LCP_API RigidSteps step_by_step(const RigidState& state, const at::Tensor& u, const RigidScene& scene,
                                const RigidOptions& options);

/// The step of a scene as a text for lcp::_rollout: all of the scene and of the options but the tensors and substeps.
///   pairs: those of contact_pairs, where they are known.
LCP_API std::string step_text(const RigidScene& scene, const RigidOptions& options,
                              const std::optional<std::vector<ContactPair>>& pairs = std::nullopt);

/// Adds dt and the options but substeps to a step_text.
void add_options(double dt, const RigidOptions& options, ops::StepWriter& writer);

/// The scene of a step_text with `bodies`, without other tensors, and its options.
RigidScene scene_of(std::string_view step);
RigidOptions options_of(std::string_view step);

/// A rollout by lcp::_rollout. The arguments must fit, as `simulate` checks.
///   u: [steps, ..., B, 6]. feedback: what a closed loop has behind the other inputs of the operator, or nothing.
LCP_API RigidSteps roll_out(const RigidState& state, const at::Tensor& u, const RigidScene& scene,
                            const std::string& step, const std::vector<at::Tensor>& feedback = {});

/// `simulate` of lcp/physics/rigid_scene.h of a scene whose step_text is known, also where its numbers cannot be read.
RigidSolution simulate(const RigidState& state, const at::Tensor& u, const RigidScene& scene, const std::string& step,
                       std::int64_t substeps, const std::optional<Feedback<RigidState>>& feedback);

}  // namespace lcp::physics
