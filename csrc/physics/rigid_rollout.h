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
#include "ops/rollout/step_text.h"
#include "physics/scene_list.h"
#include "rigid/parameter.h"

namespace lcp::physics {

/// Adds dt and the options but substeps to the text of a step.
void add_options(double dt, const RigidOptions& options, ops::StepWriter& writer);

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

/// A scene with the options of its rollouts, and what these need of both alone.
class LCP_API PreparedScene {
 public:
  /// Throws c10::Error where the scene or the options do not fit.
  ///   pairs: those of contact_pairs, where they are known. Else they are found by the numbers of the scene.
  ///   keeps: whether the parameters of the operator that are constants are copied, for many rollouts.
  PreparedScene(RigidScene scene, RigidOptions options,
                const std::optional<std::vector<ContactPair>>& pairs = std::nullopt, bool keeps = false);

  const RigidScene& scene() const { return scene_; }
  const RigidOptions& options() const { return options_; }
  std::int64_t pairs() const { return pairs_; }
  /// The step as a text for lcp::_rollout: all of the scene and of the options but the tensors and substeps.
  const std::string& text() const { return text_; }
  /// The parameters of the operator, in float64; what the formulation does not read is 0.
  std::vector<at::Tensor> parameters() const;
  /// Whether the tensors of the scene still have the numbers that were kept, and those that are constants were kept.
  bool is_current() const;

 private:
  void list_parts();
  // Of parameter k.
  at::Tensor find_parameter(std::size_t k) const;
  bool is_constant(std::size_t k) const;
  bool has_numbers_of_scene(std::size_t k) const;

  RigidScene scene_;
  RigidOptions options_;
  std::int64_t pairs_;
  std::string text_;
  std::array<std::vector<at::Tensor>, rigid::kParameters> parts_;  // of all bodies or planes
  std::array<at::Tensor, rigid::kParameters> kept_;                // undefined where it is not
};

/// A rollout by lcp::_rollout. The arguments must fit, as `simulate` checks.
///   u: [steps, ..., B, 6]. feedback: what a closed loop has behind the other inputs of the operator, or nothing.
///   is_step: whether the results are without the dimension of the steps, of which there is one.
LCP_API RigidSteps roll_out(const RigidState& state, const at::Tensor& u, const PreparedScene& scene,
                            const std::vector<at::Tensor>& feedback = {}, bool is_step = false);

/// `simulate` of lcp/physics/rigid_scene.h, also where the numbers of the scene cannot be read.
///   is_step: as above.
RigidSolution simulate(const RigidState& state, const at::Tensor& u, const PreparedScene& scene,
                       const std::optional<Feedback<RigidState>>& feedback = std::nullopt, bool is_step = false);

}  // namespace lcp::physics
