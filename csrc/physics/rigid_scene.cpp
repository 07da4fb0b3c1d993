#include "lcp/physics/rigid_scene.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include <cmath>
#include <limits>
#include <utility>

#include "physics/rigid_rollout.h"
#include "physics/rigid_stepper.h"
#include "physics/stepping.h"

namespace lcp::physics {
namespace {

using at::Tensor;

// The arguments of a rollout in the dtype of the velocity, broadcast.
struct Arguments {
  RigidStepper stepper;
  RigidState state;  // [batch..., B, ...]
  Tensor u;          // [rows, batch..., B, 6]
  Shape batch;

  Arguments(const RigidState& first, const Tensor& inputs, const RigidScene& scene, const RigidOptions& options)
      : stepper(scene, options, first.velocity.scalar_type()) {
    const std::int64_t bodies = stepper.bodies();
    const auto check = [&](const char* name, const Tensor& x, std::int64_t size) {
      TORCH_CHECK(x.dim() >= 2 && x.size(-2) == bodies && x.size(-1) == size, name, " must be [..., ", bodies, ", ",
                  size, "]; got ", x.sizes());
    };
    check("position", first.position, 3);
    check("orientation", first.orientation, 4);
    check("velocity", first.velocity, 3);
    check("angular_velocity", first.angular_velocity, 3);
    TORCH_CHECK(inputs.dim() >= 3 && inputs.size(-2) == bodies && inputs.size(-1) == 6, "u must be [rows, ..., ",
                bodies, ", 6]; got ", inputs.sizes());
    batch = common_shape({leading(first.position, 2), leading(first.orientation, 2), leading(first.velocity, 2),
                          leading(first.angular_velocity, 2), leading(inputs, 2).slice(1), stepper.batch()});
    const at::ScalarType dtype = first.velocity.scalar_type();
    const auto whole = [&](const Tensor& x, std::int64_t size) { return expanded(x.to(dtype), batch, {bodies, size}); };
    state = {whole(first.position, 3), whole(first.orientation, 4), whole(first.velocity, 3),
             whole(first.angular_velocity, 3)};
    u = expanded_inputs(inputs.to(dtype), batch, "u must be [rows, ..., B, 6]", {bodies, 6});
  }
};

RigidState state_of(const Tensors& x) { return {x[0], x[1], x[2], x[3]}; }
Tensors list_of(const RigidState& x) { return {x.position, x.orientation, x.velocity, x.angular_velocity}; }

// A state and forces for roll_out. It needs finite numbers and quaternions that have a direction, so an element without
// these stands still at the origin and is marked by its forces, which are NaN, as a sum of its state.
struct Start {
  Tensors state;
  Tensor u;
};

Start start_of(const Arguments& arguments) {
  const Tensors state = list_of(arguments.state);
  const Tensor square = arguments.state.orientation.square().sum(-1, true);
  const Tensor numbers = at::cat(state, -1), sum = numbers.sum(-1, true).sum(-2, true);
  const Tensor fits = (numbers.isfinite().all(-1, true) & (square > 0) & square.isfinite()).all(-2, true);
  if (fits.all().item<bool>()) return {state, arguments.u};
  Start start{list_of(RigidState::at_rest(at::zeros_like(arguments.state.position))),
              at::where(fits, arguments.u, sum + std::numeric_limits<double>::quiet_NaN())};
  for (std::size_t k = 0; k < state.size(); ++k) start.state[k] = at::where(fits, state[k], start.state[k]);
  return start;
}

}  // namespace

RigidSolution step(const RigidState& state, const Tensor& u, const RigidScene& scene, const RigidOptions& options) {
  return simulate(state, u.unsqueeze(0), PreparedScene(scene, options), std::nullopt, /*is_step=*/true);
}

RigidSteps step_by_step(const RigidState& state, const Tensor& u, const RigidScene& scene,
                        const RigidOptions& options) {
  const Arguments arguments(state, u, scene, options);
  const RigidStepper& stepper = arguments.stepper;
  const StepFunctions functions{
      [&](const Tensors& now, const Tensor& force, const Tensor& poison) -> Solved {
        Tensor v_free = stepper.free_velocity(state_of(now), force);
        const StepContacts contacts = stepper.find(state_of(now), v_free);
        if (poison.defined()) v_free = v_free + poison.unsqueeze(-1);
        StepOutcome outcome = stepper.solve(v_free, contacts);
        return {{at::stack({outcome.v, outcome.motion}, -2).flatten(-2), outcome.gamma, outcome.status},
                {outcome.iterations}};
      },
      [&](const Tensors& now, const Tensor&, const Solved& solved) -> Tensors {
        const Tensor both = solved.result.z.unflatten(-1, {2, -1});  // the velocities and the motion
        return list_of(stepper.advance(state_of(now), both.select(-2, 0), both.select(-2, 1)));
      }};
  const Start start = start_of(arguments);
  const Rollout all = roll_out(start.state, start.u, arguments.batch, functions);
  const auto marked = [&](const Tensor& x) { return with_failures(x, all.failure); };
  return {{marked(all.ends[0]), marked(all.ends[1]), marked(all.ends[2]), marked(all.ends[3])},
          marked(all.result.w),
          all.result.status,
          all.extras[0]};
}

RigidSolution simulate(const RigidState& state, const Tensor& u, const RigidScene& scene, const RigidOptions& options,
                       const std::optional<Feedback<RigidState>>& feedback) {
  return simulate(state, u, PreparedScene(scene, options), feedback);
}

RigidCertificate certify_rollout(const RigidState& state, const Tensor& u, const RigidScene& scene,
                                 const RigidOptions& options, const RigidSolution& rollout, double tolerance) {
  const c10::NoGradGuard no_grad;
  const Arguments arguments(state, u, scene, options);
  const RigidStepper& stepper = arguments.stepper;
  const Tensors first = list_of(arguments.state), next = list_of(rollout.next);
  Tensors residuals, margins;
  for (std::int64_t row = 0; row < arguments.u.size(0); ++row) {
    RigidState now =
        row == 0 ? arguments.state : RigidState{next[0][row - 1], next[1][row - 1], next[2][row - 1], next[3][row - 1]};
    StepCertificate worst;
    for (std::int64_t k = 0; k < options.substeps; ++k) {
      const Tensor v_free = stepper.free_velocity(now, arguments.u[row]);
      const StepContacts contacts = stepper.find(now, v_free);
      const StepOutcome outcome = stepper.solve(v_free, contacts);
      const StepCertificate found = stepper.certify(contacts, outcome);
      worst = k == 0 ? found
                     : StepCertificate{at::maximum(worst.residual, found.residual),
                                       at::minimum(worst.margin, found.margin)};
      now = stepper.advance(now, outcome.v, outcome.motion);
    }
    residuals.push_back(worst.residual);
    margins.push_back(worst.margin);
  }
  const Tensor residual = at::stack(residuals), margin = at::stack(margins), solved = rollout.status == 0;
  return {(~solved).sum(0), (solved & (margin <= tolerance)).sum(0), residual, margin};
}

RigidContacts contacts(const RigidState& state, const RigidScene& scene) {
  return RigidGeometry(scene, state.velocity.scalar_type()).find(state);
}

Tensor mass_matrix(const RigidScene& scene) { return RigidStepper(scene, {}, scene.gravity.scalar_type()).A(); }

Tensor energy(const RigidState& state, const RigidScene& scene) {
  return RigidStepper(scene, {}, state.velocity.scalar_type()).energy(state);
}

}  // namespace lcp::physics
