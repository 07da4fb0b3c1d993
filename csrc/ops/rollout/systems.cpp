// Rollouts of the systems of csrc/systems with k states, m inputs, p parameters and n pairs, threads over trajectories.
#include <ATen/Dispatch.h>
#include <c10/util/Exception.h>

#include <deque>
#include <memory>

#include "lcs/blocks.h"
#include "ops/elements.h"
#include "ops/parallel.h"
#include "ops/rollout/kind.h"
#include "ops/solve/operators.h"
#include "ops/trajectories.h"
#include "systems/adjoint.h"
#include "systems/simulator.h"
#include "systems/tangents.h"

namespace lcp::ops {
namespace system_rollouts {
namespace {

// The least number of steps for which a task of their own is worth starting.
constexpr std::int64_t kStepsPerTask = 2000;

enum Input : std::size_t { kParameters, kState, kStepInput, kDirections };
enum Output : std::size_t { kNext, kZ, kW, kResidual, kStatus, kBasis };

template <class T>
systems::Start<T> start_of(TrajectoryReader<T>& reader, at::TensorList x, const Tensor& D) {
  return {reader.per_trajectory(x[kParameters], 1), reader.per_trajectory(D, 2), reader.per_trajectory(x[kState], 1),
          reader.per_step(x[kStepInput])};
}

template <class T>
systems::Steps<T> steps_of(TrajectoryReader<T>& reader, at::TensorList path) {
  return {reader.per_step(path[kNext]), reader.per_step(path[kZ]), reader.per_step(path[kW]),
          reader.template per_step<std::int8_t>(path[kStatus].unsqueeze(-1)),
          reader.template per_step<std::int8_t>(path[kBasis], true)};
}

class SystemKind final : public RolloutKind {
 public:
  explicit SystemKind(const systems::System& system)
      : RolloutKind(system.name,
                    {tensor("parameters", {system.parameters, false}), tensor("x", {system.states, false}),
                     tensor("u", {system.inputs, true}), tensor("D", "2 n")},
                    kDirections,
                    {of_each_step("x_next", {system.states, true}), of_each_step("z", "T n"), of_each_step("w", "T n"),
                     of_each_step("residual", "T"), of_each_step("status", "T", at::kChar),
                     of_each_step("basis", "T s", at::kChar)},
                    kZ + 1),
        own_(system.formulas == nullptr ? nullptr : &system) {}

  Plant plant() const override { return {kState, 1, kStepInput}; }

  // Smoothed, a fixed-point scheme has the derivatives of all of its passes, of which only the last is an LCP of the
  // step.
  bool differentiates_by_tensors(const StepText& step) const override {
    return name() == "planar_block_by_fixed_point" && step.number_if("kappa").value_or(0) > 0;
  }

  void check(const Call& call, const StepText& step) const override {
    check_ties(step);
    TORCH_CHECK(system().fits(system(), call.size('n').guard_int(__FILE__, __LINE__)), "a ", name(), " does not have ",
                call.size('n'), " pairs");
    check_saved(call, call.size('n'));
  }

  // The basis.
  std::int64_t saved(const StepText&, at::TensorList x) const override { return x[kDirections].size(-1); }

  void run(const StepText& step, at::TensorList x, std::int64_t saved, at::TensorList results) const override {
    const at::IntArrayRef batch = batch_of(results[kStatus]);
    const std::int64_t count = c10::multiply_integers(batch), steps = x[kStepInput].size(-2);
    if (count * steps == 0) return;
    const systems::System& system = this->system();
    const auto pairs = static_cast<int>(x[kDirections].size(-1));
    AT_DISPATCH_FLOATING_TYPES(x[kParameters].scalar_type(), "lcp::_rollout", [&] {
      const solver::Settings settings = settings_of(step, std::is_same_v<scalar_t, float>);
      TrajectoryReader<scalar_t> reader(batch);
      const auto start = start_of(reader, x, x[kDirections]);
      const auto at = [&](Output k) { return results[k].mutable_data_ptr<scalar_t>(); };
      const lcs::Path<scalar_t> path = {at(kNext),
                                        at(kZ),
                                        at(kW),
                                        at(kResidual),
                                        results[kStatus].mutable_data_ptr<std::int8_t>(),
                                        saved > 0 ? results[kBasis].mutable_data_ptr<std::int8_t>() : nullptr,
                                        count};
      const lcs::Size size = {system.states, system.inputs, pairs};
      parallel_for(0, count, trajectories_per_task(steps, kStepsPerTask), [&](std::int64_t begin, std::int64_t end) {
        systems::Simulator<scalar_t> simulator(system, pairs, settings);
        simulator.run(end - begin, steps, start.from(begin, system, pairs), lcs::from(path, begin, size));
      });
    });
  }

  void adjoint(const StepText& step, at::TensorList x, at::TensorList path, at::TensorList g, std::int64_t wanted,
               at::TensorList gradients) const override {
    const at::IntArrayRef batch = batch_of(gradients.front());
    const std::int64_t count = c10::multiply_integers(batch), steps = x[kStepInput].size(-2);
    if (count == 0) return;
    const systems::System& system = this->system();
    const auto pairs = static_cast<int>(x[kDirections].size(-1));
    AT_DISPATCH_FLOATING_TYPES(x[kParameters].scalar_type(), "lcp::_rollout_adjoint", [&] {
      TrajectoryReader<scalar_t> reader(batch);
      const auto start = start_of(reader, x, x[kDirections]);
      const auto walked = steps_of(reader, path);
      const auto of_next = reader.per_step(g[kNext]), of_z = reader.per_step(g[kZ]);
      const auto target = [&](std::size_t k, std::int64_t numbers) {
        return (wanted >> k & 1) != 0 ? gradients[k].mutable_data_ptr<scalar_t>() + numbers : nullptr;
      };
      parallel_for(0, count, trajectories_per_task(steps, kStepsPerTask), [&](std::int64_t begin, std::int64_t end) {
        using lcs::from;
        systems::Adjoint<scalar_t> adjoint(system, pairs, ties_named(step.word("ties")),
                                           step.number_if("kappa").value_or(0));
        adjoint.run(end - begin, steps, start.from(begin, system, pairs),
                    {from(walked.x_next, begin, system.states), from(walked.z, begin, pairs),
                     from(walked.w, begin, pairs), from(walked.status, begin, 1), from(walked.states, begin, pairs),
                     from(of_next, begin, system.states), from(of_z, begin, pairs)},
                    {target(kParameters, begin * system.parameters), target(kState, begin * system.states),
                     target(kStepInput, begin * system.inputs), count});
      });
    });
  }

  void tangent(const StepText& step, at::TensorList x, at::TensorList path, at::TensorList d,
               at::TensorList tangents) const override {
    const at::IntArrayRef batch = tangents.front().sizes().slice(0, tangents.front().dim() - 2);
    const std::int64_t count = c10::multiply_integers(batch), steps = x[kStepInput].size(-2);
    if (count * steps == 0) return;
    const systems::System& system = this->system();
    const auto pairs = static_cast<int>(x[kDirections].size(-1));
    AT_DISPATCH_FLOATING_TYPES(x[kParameters].scalar_type(), "lcp::_rollout_tangent", [&] {
      TrajectoryReader<scalar_t> reader(batch);
      const auto start = start_of(reader, x, x[kDirections]), change = start_of(reader, d, x[kDirections]);
      const auto walked = steps_of(reader, path);
      auto* const to_x = tangents[kNext].mutable_data_ptr<scalar_t>();
      auto* const to_z = tangents[kZ].mutable_data_ptr<scalar_t>();
      parallel_for(0, count, trajectories_per_task(steps, kStepsPerTask), [&](std::int64_t begin, std::int64_t end) {
        using lcs::from;
        systems::Tangents<scalar_t> all(system, pairs, ties_named(step.word("ties")),
                                        step.number_if("kappa").value_or(0));
        all.run(end - begin, steps, start.from(begin, system, pairs),
                {from(walked.x_next, begin, system.states), from(walked.z, begin, pairs), from(walked.w, begin, pairs),
                 from(walked.status, begin, 1), from(walked.states, begin, pairs)},
                change.from(begin, system, pairs), {to_x + begin * system.states, to_z + begin * pairs, count});
      });
    });
  }

 private:
  // One of the library is that of the instruction set in use.
  const systems::System& system() const { return own_ != nullptr ? *own_ : *systems::find_system(name()); }

  const systems::System* own_;
};

}  // namespace
}  // namespace system_rollouts

std::unique_ptr<RolloutKind> system_kind(const systems::System& system) {
  return std::make_unique<system_rollouts::SystemKind>(system);
}

const RolloutKind* find_system_kind(std::string_view name) {
  static const std::deque<system_rollouts::SystemKind> kinds = [] {
    std::deque<system_rollouts::SystemKind> all;
    for (const systems::System& system : systems::kernels().systems) all.emplace_back(system);
    return all;
  }();
  for (const system_rollouts::SystemKind& kind : kinds) {
    if (kind.name() == name) return &kind;
  }
  return nullptr;
}

}  // namespace lcp::ops
