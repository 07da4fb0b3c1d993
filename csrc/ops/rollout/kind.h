// The kinds of steps that lcp::_rollout knows.
#pragma once

#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "ops/operator.h"
#include "ops/rollout/rollout.h"
#include "solver/settings.h"

namespace lcp::systems {
struct System;
}

namespace lcp::ops {

/// What a feedback reads and writes.
struct Plant {
  std::size_t first_state, states;  ///< the inputs that are the state; the results begin with those of its end
  std::size_t input;                ///< the one that each step has its own of
  /// Which part of the state is unit quaternions.
  std::optional<std::size_t> quaternions = {};
};

/// What lcp::_rollout and its derivatives call for the steps of a kind, with tensors that fit. Inputs are [...] or, if
/// each step has its own, [..., T, size]; results are [..., T, size] or [..., T].
class RolloutKind {
 public:
  /// differentiable_inputs, differentiable_results: how many, the first ones, have derivatives.
  RolloutKind(std::string_view name, std::vector<Argument> inputs, std::size_t differentiable_inputs,
              std::vector<Result> results, std::size_t differentiable_results);
  virtual ~RolloutKind() = default;
  RolloutKind(const RolloutKind&) = delete;
  RolloutKind& operator=(const RolloutKind&) = delete;

  std::string_view name() const { return name_; }
  std::size_t differentiable_inputs() const { return tangents_.size(); }
  std::size_t differentiable_results() const { return gradients_.size(); }
  c10::ArrayRef<Argument> inputs() const { return inputs_; }
  c10::ArrayRef<Result> results() const { return results_; }
  // The results, the gradients of the differentiable ones and the tangents of the differentiable inputs, as arguments;
  // and the gradients of these inputs and the tangents of these results, as results.
  c10::ArrayRef<Argument> path() const { return path_; }
  c10::ArrayRef<Argument> gradients() const { return gradients_; }
  c10::ArrayRef<Argument> tangents() const { return tangents_; }
  c10::ArrayRef<Result> gradients_of_inputs() const { return gradients_of_inputs_; }
  c10::ArrayRef<Result> tangents_of_results() const { return tangents_of_results_; }

  virtual Plant plant() const = 0;

  /// Throws c10::Error where the sizes do not fit the step, and by check_saved.
  virtual void check(const Call& call, const StepText& step) const = 0;

  /// The size named s: how many numbers of each step `run` has to keep for derivatives.
  virtual std::int64_t saved(const StepText& step, at::TensorList x) const = 0;

  /// saved: that of `saved`, or 0 where there will be no derivative.
  virtual void run(const StepText& step, at::TensorList x, std::int64_t saved, at::TensorList results) const = 0;

  /// The gradients of the differentiable inputs, for each trajectory. wanted: bit k is set where gradient k is wanted;
  /// the others are not written.
  virtual void adjoint(const StepText& step, at::TensorList x, at::TensorList path, at::TensorList g,
                       std::int64_t wanted, at::TensorList gradients) const = 0;

  /// The tangents of the differentiable results for those of the differentiable inputs.
  virtual void tangent(const StepText& step, at::TensorList x, at::TensorList path, at::TensorList d,
                       at::TensorList tangents) const = 0;

  /// What `linearize` returns; nothing where a kind has none.
  virtual c10::ArrayRef<Result> linearization() const { return {}; }
  /// The derivatives of the end of a rollout in its first state and in a constant input.
  virtual void linearize(const StepText& step, at::TensorList x, at::TensorList path, at::TensorList results) const;

  /// What `certify` returns; nothing where a kind has none.
  virtual c10::ArrayRef<Result> certificate() const { return {}; }
  /// What is true of the steps of a rollout.
  virtual void certify(const StepText& step, at::TensorList x, at::TensorList path, at::TensorList results) const;

  /// Whether also the derivatives of the first order are found by operators of tensors.
  virtual bool differentiates_by_tensors(const StepText& /*step*/) const { return false; }

 protected:
  /// Throws c10::Error where both ties and kappa are chosen.
  static void check_ties(const StepText& step);
  /// Throws c10::Error unless the size named s is `all`, or 0 in a call of `run`.
  static void check_saved(const Call& call, const c10::SymInt& all);

 private:
  std::string_view name_;
  std::vector<Argument> inputs_, path_, gradients_, tangents_;
  std::vector<Result> results_, gradients_of_inputs_, tangents_of_results_;
};

/// The settings of the solver of a step that is an LCP.
solver::Settings settings_of(const StepText& step, bool single_precision);

/// The kind of a step. Throws c10::Error where there is none.
const RolloutKind& kind_of(std::string_view step);

/// That of a kind. Throws c10::Error where none is registered.
ByTensors by_tensors(std::string_view kind);

// The kinds, each in a file of its name.
const RolloutKind& rigid_kind();
const RolloutKind& lcs_kind();
const RolloutKind* find_compliant_kind(std::string_view name);
const RolloutKind* find_system_kind(std::string_view name);
const RolloutKind* find_registered_kind(std::string_view name);
/// The step of a closed loop is "closed_loop " and the step of any other kind.
const RolloutKind* find_closed_loop(std::string_view step);

/// Any of these kinds but those that users register.
const RolloutKind* find_library_kind(std::string_view name);

/// The kind of a system, which must outlive it.
std::unique_ptr<RolloutKind> system_kind(const systems::System& system);

}  // namespace lcp::ops
