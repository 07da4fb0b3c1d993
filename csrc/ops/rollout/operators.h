// Rollouts of steps, described by a text and one list of tensors: all steps of all trajectories in one call.
#pragma once

#include <algorithm>
#include <string_view>
#include <vector>

#include "ops/rollout/kind.h"

namespace lcp::ops {

inline c10::ArrayRef<Argument> inputs_of(std::string_view step) { return kind_of(step).inputs(); }
inline c10::ArrayRef<Argument> path_of(std::string_view step) { return kind_of(step).path(); }
inline c10::ArrayRef<Argument> gradients_of(std::string_view step) { return kind_of(step).gradients(); }
inline c10::ArrayRef<Argument> tangents_of(std::string_view step) { return kind_of(step).tangents(); }
inline c10::ArrayRef<Result> results_of(std::string_view step) { return kind_of(step).results(); }
inline c10::ArrayRef<Result> gradients_of_inputs(std::string_view step) { return kind_of(step).gradients_of_inputs(); }
inline c10::ArrayRef<Result> tangents_of_results(std::string_view step) { return kind_of(step).tangents_of_results(); }

inline c10::ArrayRef<Result> linearization_of(std::string_view step) { return kind_of(step).linearization(); }
inline c10::ArrayRef<Result> certificate_of(std::string_view step) { return kind_of(step).certificate(); }

void check_rollout(const Call& call);

inline constexpr Argument kStep = flag("str step");
inline constexpr Argument kInputsOfRollout = tensors("Tensor[] x", inputs_of);
inline constexpr Argument kPathOfRollout = tensors("Tensor[] path", path_of);

/// The results of RolloutKind::run. saved: 0, or RolloutKind::saved, which is set where a derivative is asked for.
inline constexpr Operator kRollout("_rollout", Operator::Kind::kDifferentiable,
                                   {kStep, kInputsOfRollout, size_flag("int saved", "s")}, results_of, check_rollout);

/// The gradients of the inputs of a rollout with the results `path`, see RolloutKind::adjoint.
inline constexpr Operator kRolloutAdjoint("_rollout_adjoint", Operator::Kind::kDifferentiable,
                                          {kStep, kInputsOfRollout, kPathOfRollout, tensors("Tensor[] g", gradients_of),
                                           flag("int wanted")},
                                          gradients_of_inputs, check_rollout);

/// The tangents of its results, see RolloutKind::tangent.
inline constexpr Operator kRolloutTangent("_rollout_tangent", Operator::Kind::kDifferentiable,
                                          {kStep, kInputsOfRollout, kPathOfRollout, tensors("Tensor[] d", tangents_of)},
                                          tangents_of_results, check_rollout);

/// The tangents of the gradients of its inputs, where these change by d and g by dg.
inline constexpr Operator kRolloutAdjointTangent("_rollout_adjoint_tangent", Operator::Kind::kDifferentiable,
                                                 {kStep, kInputsOfRollout, kPathOfRollout,
                                                  tensors("Tensor[] g", gradients_of),
                                                  tensors("Tensor[] d", tangents_of),
                                                  tensors("Tensor[] dg", gradients_of)},
                                                 gradients_of_inputs, check_rollout);

/// The tangents of the tangents d of its results, where the inputs change by dx and d by dd. It has no derivative.
inline constexpr Operator kRolloutTangentTangent("_rollout_tangent_tangent", Operator::Kind::kDifferentiable,
                                                 {kStep, kInputsOfRollout, kPathOfRollout,
                                                  tensors("Tensor[] d", tangents_of),
                                                  tensors("Tensor[] dx", tangents_of),
                                                  tensors("Tensor[] dd", tangents_of)},
                                                 tangents_of_results, check_rollout);

/// See RolloutKind::linearize.
inline constexpr Operator kRolloutLinearization("_rollout_linearization", Operator::Kind::kNotDifferentiable,
                                                {kStep, kInputsOfRollout, kPathOfRollout}, linearization_of,
                                                check_rollout);

/// See RolloutKind::certify.
inline constexpr Operator kRolloutCertificate("_rollout_certificate", Operator::Kind::kNotDifferentiable,
                                              {kStep, kInputsOfRollout, kPathOfRollout}, certificate_of, check_rollout);

using List = std::vector<Tensor>;

/// Whether a rollout with these results has a step; the state of a step may be empty.
inline bool has_steps(at::TensorList path) {
  return std::any_of(path.begin(), path.end(), [](const Tensor& x) { return x.sym_numel() > 0; });
}

inline const auto& rollout_op() {
  return handle<List(std::string_view step, at::TensorList x, std::int64_t saved), kRollout>();
}
inline const auto& rollout_adjoint_op() {
  return handle<List(std::string_view step, at::TensorList x, at::TensorList path, at::TensorList g,
                     std::int64_t wanted),
                kRolloutAdjoint>();
}
inline const auto& rollout_tangent_op() {
  return handle<List(std::string_view step, at::TensorList x, at::TensorList path, at::TensorList d),
                kRolloutTangent>();
}
inline const auto& rollout_adjoint_tangent_op() {
  return handle<List(std::string_view step, at::TensorList x, at::TensorList path, at::TensorList g, at::TensorList d,
                     at::TensorList dg),
                kRolloutAdjointTangent>();
}
inline const auto& rollout_tangent_tangent_op() {
  return handle<List(std::string_view step, at::TensorList x, at::TensorList path, at::TensorList d, at::TensorList dx,
                     at::TensorList dd),
                kRolloutTangentTangent>();
}
inline const auto& rollout_linearization_op() {
  return handle<List(std::string_view step, at::TensorList x, at::TensorList path), kRolloutLinearization>();
}
inline const auto& rollout_certificate_op() {
  return handle<List(std::string_view step, at::TensorList x, at::TensorList path), kRolloutCertificate>();
}

// The derivatives of by_tensors(kind): what the operators compute. The rollout must have steps. has_derivatives:
// whether they can be differentiated again, in reverse mode.
List adjoint_by_tensors(std::string_view step, at::TensorList x, at::TensorList g);
List tangent_by_tensors(std::string_view step, at::TensorList x, at::TensorList d, bool has_derivatives);
List adjoint_tangent_by_tensors(std::string_view step, at::TensorList x, at::TensorList g, at::TensorList d,
                                at::TensorList dg, bool has_derivatives);
List tangent_tangent_by_tensors(std::string_view step, at::TensorList x, at::TensorList d, at::TensorList dx,
                                at::TensorList dd);

}  // namespace lcp::ops
