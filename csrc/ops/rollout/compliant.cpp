// Rollouts of a body with p parameters and c contacts on compliant ground: csrc/compliant, threads over trajectories.
// They compute in float64 alone: their caller converts.
#include <c10/util/Exception.h>

#include "compliant/simulator.h"
#include "compliant/sweeps.h"
#include "ops/contact/operators.h"
#include "ops/elements.h"
#include "ops/parallel.h"
#include "ops/rollout/kind.h"
#include "ops/trajectories.h"

namespace lcp::ops {
namespace compliant_rollouts {
namespace {

// The least number of steps for which a task of their own is worth starting.
constexpr std::int64_t kStepsPerTask = 50;

enum Input : std::size_t { kParameters, kFirst, kForces, kInputs };
enum Output : std::size_t { kNext, kGamma, kY, kStatus, kIterations };

// Inputs, or tangents of them, in memory.
class Views {
 public:
  Views(at::IntArrayRef batch, at::TensorList x)
      : reader_(batch),
        parameters_(reader_.per_trajectory(x[kParameters], 1)),
        first_(reader_.per_trajectory(x[kFirst], 1)),
        u_(reader_.per_step(x[kForces])),
        size_(x[kParameters].size(-1)) {}

  compliant::Inputs operator()(std::int64_t b) const {
    return {batch::from(parameters_, b, size_).data, batch::from(first_, b, 6).data, series_of(u_, b, 3)};
  }

 private:
  TrajectoryReader<double> reader_;
  batch::BatchView<double> parameters_, first_;
  lcs::StepsView<double> u_;
  std::int64_t size_;
};

// Walked trajectories in memory.
class WalkedViews {
 public:
  WalkedViews(at::IntArrayRef batch, at::TensorList path)
      : reader_(batch),
        next_(reader_.per_step(path[kNext])),
        gamma_(reader_.per_step(path[kGamma])),
        y_(reader_.per_step(path[kY])),
        status_(reader_.per_step<std::int8_t>(path[kStatus].unsqueeze(-1))),
        rows_(path[kGamma].size(-1)) {}

  compliant::WalkedPath operator()(std::int64_t b) const {
    return {series_of(next_, b, 6), series_of(gamma_, b, rows_), series_of(y_, b, rows_), series_of(status_, b, 1)};
  }

 private:
  TrajectoryReader<double> reader_;
  lcs::StepsView<double> next_, gamma_, y_;
  lcs::StepsView<std::int8_t> status_;
  std::int64_t rows_;
};

class CompliantKind final : public RolloutKind {
 public:
  CompliantKind(std::string_view name, compliant::Form form)
      : RolloutKind(
            name, {tensor("parameters", {compliant::parameters_of(form), false}), tensor("x", "6"), tensor("u", "T 3")},
            kInputs,
            {of_each_step("x_next", "T 6"), of_each_step("gamma", {3 * compliant::contacts_of(form), true}),
             of_each_step("y", {3 * compliant::contacts_of(form), true}), of_each_step("status", "T", at::kChar),
             of_each_step("iterations", "T", at::kLong)},
            kGamma + 1),
        form_(form) {}

  Plant plant() const override { return {kFirst, 1, kForces}; }

  void check(const Call& call, const StepText&) const override {
    const at::ScalarType dtype = call.first().scalar_type();
    TORCH_CHECK(dtype == at::kDouble, "parameters must be float64; got ", dtype);
  }

  std::int64_t saved(const StepText&, at::TensorList) const override { return 0; }

  void run(const StepText& step, at::TensorList x, std::int64_t, at::TensorList results) const override {
    const at::IntArrayRef batch = batch_of(results[kStatus]);
    const std::int64_t count = c10::multiply_integers(batch), steps = x[kForces].size(-2);
    if (count * steps == 0) return;
    const compliant::Body body = this->body(step);
    const std::int64_t rows = results[kGamma].size(-1);
    const contact::Limits limits = {step.number_if("tolerance").value_or(kContactTolerance),
                                    step.count_if("max_iterations").value_or(contact::kDefaultMaxIterations)};
    const Views views(batch, x);
    parallel_for(0, count, trajectories_per_task(steps, kStepsPerTask), [&](std::int64_t begin, std::int64_t end) {
      compliant::Simulator simulator(body, limits);
      for (std::int64_t b = begin; b < end; ++b) {
        simulator.run(
            steps, views(b),
            {series_of<double>(results[kNext], count, b, 6), series_of<double>(results[kGamma], count, b, rows),
             series_of<double>(results[kY], count, b, rows), series_of<std::int8_t>(results[kStatus], count, b, 1),
             series_of<std::int64_t>(results[kIterations], count, b, 1)});
      }
    });
  }

  void adjoint(const StepText& step, at::TensorList x, at::TensorList path, at::TensorList g, std::int64_t wanted,
               at::TensorList gradients) const override {
    const at::IntArrayRef batch = batch_of(gradients.front());
    const std::int64_t count = c10::multiply_integers(batch), steps = x[kForces].size(-2);
    if (count == 0) return;
    const compliant::Body body = this->body(step);
    const Views views(batch, x);
    const WalkedViews walked(batch, path);
    TrajectoryReader<double> reader(batch);
    const auto of_next = reader.per_step(g[kNext]), of_gamma = reader.per_step(g[kGamma]);
    const auto target = [&](std::size_t k, std::int64_t b) {
      return (wanted >> k & 1) != 0 ? gradients[k].mutable_data_ptr<double>() + b * gradients[k].size(-1) : nullptr;
    };
    parallel_for(0, count, trajectories_per_task(steps, kStepsPerTask), [&](std::int64_t begin, std::int64_t end) {
      compliant::LinearStep linear(body);
      for (std::int64_t b = begin; b < end; ++b) {
        compliant::adjoint(linear, body, steps, views(b), walked(b), series_of(of_next, b, 6),
                           series_of(of_gamma, b, g[kGamma].size(-1)),
                           {target(kParameters, b), target(kFirst, b), {target(kForces, b), count * 3}});
      }
    });
  }

  void tangent(const StepText& step, at::TensorList x, at::TensorList path, at::TensorList d,
               at::TensorList tangents) const override {
    const at::IntArrayRef batch = tangents.front().sizes().slice(0, tangents.front().dim() - 2);
    const std::int64_t count = c10::multiply_integers(batch), steps = x[kForces].size(-2);
    if (count * steps == 0) return;
    const compliant::Body body = this->body(step);
    const Views views(batch, x), along(batch, d);
    const WalkedViews walked(batch, path);
    parallel_for(0, count, trajectories_per_task(steps, kStepsPerTask), [&](std::int64_t begin, std::int64_t end) {
      compliant::LinearStep linear(body);
      for (std::int64_t b = begin; b < end; ++b) {
        compliant::tangent(linear, body, steps, views(b), walked(b), along(b),
                           series_of<double>(tangents[kNext], count, b, 6),
                           series_of<double>(tangents[kGamma], count, b, tangents[kGamma].size(-1)));
      }
    });
  }

 private:
  compliant::Body body(const StepText& step) const {
    return {form_, step.number("dt"), step.number("sigma"), step.number("beta")};
  }

  compliant::Form form_;
};

}  // namespace
}  // namespace compliant_rollouts

const RolloutKind* find_compliant_kind(std::string_view name) {
  static const compliant_rollouts::CompliantKind particle("compliant_particle", compliant::Form::kParticle),
      block("compliant_block", compliant::Form::kBlock);
  for (const compliant_rollouts::CompliantKind* kind : {&particle, &block}) {
    if (kind->name() == name) return kind;
  }
  return nullptr;
}

}  // namespace lcp::ops
