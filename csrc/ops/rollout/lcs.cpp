// Rollouts of linear complementarity systems with k states, m inputs and n pairs, threads over trajectories.
#include <ATen/Dispatch.h>
#include <c10/util/Exception.h>

#include "lcs/adjoint.h"
#include "lcs/blocks.h"
#include "lcs/simulator.h"
#include "lcs/tangent.h"
#include "ops/lcs/operators.h"
#include "ops/parallel.h"
#include "ops/rollout/kind.h"
#include "ops/trajectories.h"

namespace lcp::ops {
namespace lcs_rollouts {
namespace {

// The least number of steps for which a task of their own is worth starting.
constexpr std::int64_t kStepsPerTask = 2000;

enum Input : std::size_t { kA, kB, kD, kG, kd, kE, kH, kM, kq, kState, kStepInput, kInputs };
enum Output : std::size_t { kNext, kZ, kW, kResidual, kStatus, kBasis };

lcs::Size size_of(at::TensorList x) {
  return {static_cast<int>(x[kB].size(-2)), static_cast<int>(x[kB].size(-1)), static_cast<int>(x[kD].size(-1))};
}

lcs::Cone cone_of(const StepText& step) {
  if (!step.word_if("cone")) return {};
  const std::vector<std::int64_t> cone = step.counts("cone");
  return lcs::Cone(cone.begin(), cone.end());
}

// The inputs, or their changes.
template <class T>
lcs::Given<T> given_of(TrajectoryReader<T>& reader, at::TensorList x) {
  const auto each = [&](Input k, std::int64_t core_dims) { return reader.per_trajectory(x[k], core_dims); };
  return {{each(kA, 2), each(kB, 2), each(kD, 2), each(kG, 2), each(kd, 1), each(kE, 2), each(kH, 2), each(kM, 2),
           each(kq, 1)},
          each(kState, 1),
          reader.per_step(x[kStepInput])};
}

// Calls part(begin, end) for trajectories begin .. end - 1, on several threads.
template <class Part>
void for_each_part(std::int64_t count, std::int64_t steps, const Part& part) {
  parallel_for(0, count, trajectories_per_task(steps, kStepsPerTask), part);
}

class LcsKind final : public RolloutKind {
 public:
  LcsKind()
      : RolloutKind("lcs",
                    {tensor("A", "k k"), tensor("B", "k m"), tensor("D", "k n"), tensor("G", "k n"), tensor("d", "k"),
                     tensor("E", "n k"), tensor("H", "n m"), tensor("M", "n n"), tensor("q", "n"), tensor("x", "k"),
                     tensor("u", "T m")},
                    kInputs,
                    {of_each_step("x_next", "T k"), of_each_step("z", "T n"), of_each_step("w", "T n"),
                     of_each_step("residual", "T"), of_each_step("status", "T", at::kChar),
                     of_each_step("basis", "T s", at::kChar)},
                    kW + 1) {}

  Plant plant() const override { return {kState, 1, kStepInput}; }

  void check(const Call& call, const StepText& step) const override {
    check_ties(step);
    if (step.word_if("cone")) check_cone(step.counts("cone"), call.size('n'));
    check_saved(call, call.size('n'));
  }

  // The basis.
  std::int64_t saved(const StepText&, at::TensorList x) const override { return x[kM].size(-1); }

  void run(const StepText& step, at::TensorList x, std::int64_t saved, at::TensorList results) const override {
    const at::IntArrayRef batch = batch_of(results[kStatus]);
    const std::int64_t count = c10::multiply_integers(batch), steps = x[kStepInput].size(-2);
    if (count * steps == 0) return;
    const lcs::Size size = size_of(x);
    AT_DISPATCH_FLOATING_TYPES(x[kA].scalar_type(), "lcp::_rollout", [&] {
      const solver::Settings settings = settings_of(step, std::is_same_v<scalar_t, float>);
      TrajectoryReader<scalar_t> reader(batch);
      const auto [system, first, inputs] = given_of(reader, x);
      const auto at = [&](Output k) { return results[k].mutable_data_ptr<scalar_t>(); };
      const auto bytes = [&](Output k) { return results[k].mutable_data_ptr<std::int8_t>(); };
      const lcs::Path<scalar_t> path = {
          at(kNext), at(kZ), at(kW), at(kResidual), bytes(kStatus), saved > 0 ? bytes(kBasis) : nullptr, count};
      for_each_part(
          count, steps, [&, &system = system, &first = first, &inputs = inputs](std::int64_t begin, std::int64_t end) {
            lcs::Simulator<scalar_t> simulator(size, cone_of(step), settings);
            simulator.run(end - begin, steps, lcs::from(system, begin, size), batch::from(first, begin, size.k),
                          lcs::from(inputs, begin, size.m), lcs::from(path, begin, size));
          });
    });
  }

  void adjoint(const StepText& step, at::TensorList x, at::TensorList path, at::TensorList g, std::int64_t wanted,
               at::TensorList gradients) const override {
    const at::IntArrayRef batch = gradients[kq].sizes().slice(0, gradients[kq].dim() - 1);
    const std::int64_t count = c10::multiply_integers(batch), steps = x[kStepInput].size(-2);
    if (count == 0) return;
    const lcs::Size size = size_of(x);
    AT_DISPATCH_FLOATING_TYPES(x[kA].scalar_type(), "lcp::_rollout_adjoint", [&] {
      const auto target = [&](Input k) {
        return (wanted >> k & 1) != 0 ? gradients[k].mutable_data_ptr<scalar_t>() : nullptr;
      };
      const lcs::Gradients<scalar_t> to = {target(kA), target(kB),     target(kD),         target(kG),
                                           target(kd), target(kE),     target(kH),         target(kM),
                                           target(kq), target(kState), target(kStepInput), count};
      TrajectoryReader<scalar_t> reader(batch);
      const lcs::Given<scalar_t> given = given_of(reader, x);
      const lcs::WalkedPath<scalar_t> walked = {given.x,
                                                given.u,
                                                reader.per_step(path[kNext]),
                                                reader.per_step(path[kZ]),
                                                reader.per_step(path[kW]),
                                                reader.template per_step<std::int8_t>(path[kBasis], true),
                                                reader.per_step(g[kNext]),
                                                reader.per_step(g[kZ]),
                                                reader.per_step(g[kW])};
      for_each_part(count, steps, [&](std::int64_t begin, std::int64_t end) {
        lcs::Adjoint<scalar_t> adjoint(size, cone_of(step), ties_named(step.word("ties")),
                                       step.number_if("kappa").value_or(0));
        adjoint.run(end - begin, steps, lcs::from(given.system, begin, size), lcs::from(walked, begin, size),
                    lcs::from(to, begin, size));
      });
    });
  }

  void tangent(const StepText& step, at::TensorList x, at::TensorList path, at::TensorList d,
               at::TensorList tangents) const override {
    const at::IntArrayRef batch = tangents.front().sizes().slice(0, tangents.front().dim() - 2);
    const std::int64_t count = c10::multiply_integers(batch), steps = x[kStepInput].size(-2);
    if (count * steps == 0) return;
    const lcs::Size size = size_of(x);
    AT_DISPATCH_FLOATING_TYPES(x[kA].scalar_type(), "lcp::_rollout_tangent", [&] {
      TrajectoryReader<scalar_t> reader(batch);
      const lcs::Given<scalar_t> given = given_of(reader, x), change = given_of(reader, d);
      const lcs::WalkedSteps<scalar_t> walked = {reader.per_step(path[kNext]), reader.per_step(path[kZ]),
                                                 reader.per_step(path[kW]),
                                                 reader.template per_step<std::int8_t>(path[kStatus].unsqueeze(-1)),
                                                 reader.template per_step<std::int8_t>(path[kBasis], true)};
      const auto at = [&](Output k) { return tangents[k].mutable_data_ptr<scalar_t>(); };
      const lcs::Changes<scalar_t> to = {at(kNext), at(kZ), at(kW), count};
      for_each_part(count, steps, [&](std::int64_t begin, std::int64_t end) {
        lcs::Tangent<scalar_t> all(size, cone_of(step), ties_named(step.word("ties")),
                                   step.number_if("kappa").value_or(0));
        all.run(end - begin, steps, lcs::from(given, begin, size), lcs::from(walked, begin, size),
                lcs::from(change, begin, size), lcs::from(to, begin, size));
      });
    });
  }
};

}  // namespace
}  // namespace lcs_rollouts

const RolloutKind& lcs_kind() {
  static const lcs_rollouts::LcsKind kind;
  return kind;
}

}  // namespace lcp::ops
