// Rollouts of the steps that users have registered.
#include <ATen/ATen.h>
#include <torch/library.h>

#include "lcp/step.h"
#include "ops/composite.h"
#include "ops/rollout/registered.h"
#include "ops/rollout/rollout.h"
#include "physics/stepping.h"
#include "physics/system_rollout.h"

namespace lcp {

LCP_MEMBERS(SimulateStepOptions, ties, kappa, tolerance)
LCP_MEMBERS(StepRollout, x_next, z, w, status, residual)
LCP_MEMBERS(StepNames, parameters, states, inputs, pairs)

namespace physics {
namespace {

using at::Tensor;

// The numbers of each tensor, [..., k], one behind another.
Tensors numbers_of(std::initializer_list<Tensor> all) {
  Tensors numbers;
  for (const Tensor& x : all) {
    for (const Tensor& each : x.unbind(-1)) numbers.push_back(each);
  }
  return numbers;
}

// x_next and z for the inputs of lcp::_rollout.
Tensors own_step_by_tensors(const ops::StepText& text, const Tensors& inputs) {
  const detail::RegisteredStep& step = ops::registered_step(text.kind());
  const Tensor &parameters = inputs[0], &x = inputs[1], &u = inputs[2];
  const Shape batch = common_shape({leading(parameters), leading(x), leading(u, 2)});
  const SolveOptions options = solve_options_of(text);
  // Trajectories with a parameter that is not finite are refused, by inputs that are NaN. Formulas are given another
  // number in its place, so that no NaN enters the gradients of what other trajectories share.
  const Tensor refused = 0 * parameters.sum(-1, true).unsqueeze(-1);
  const Tensor numbers = at::where(parameters.isfinite(), parameters, 1);
  const StepFunctions functions{
      [&](const Tensors& state, const Tensor& input, const Tensor& poison) -> Solved {
        const auto [M, q] = step.problem_of(numbers_of({numbers, state[0], input}));
        return {solve(M, poison.defined() ? q + poison.unsqueeze(-1) : q, options), {}};
      },
      [&](const Tensors& state, const Tensor& input, const Solved& solved) -> Tensors {
        return {step.next_of(numbers_of({numbers, state[0], input, solved.result.z, solved.result.w}))};
      }};
  const Rollout all =
      roll_out({expanded(x, batch, {step.sizes().states})},
               expanded_inputs((u + refused).movedim(-2, 0), batch, "u must be [..., T, m]", {step.sizes().inputs}),
               batch, functions);
  return steps_behind({with_failures(all.ends[0], all.failure), with_failures(all.result.z, all.failure)});
}

void check_numbers(const char* name, const Tensor& x, std::int64_t dims, const std::vector<std::string>& names) {
  TORCH_CHECK(x.dim() >= dims && x.size(-1) == static_cast<std::int64_t>(names.size()), name, " must be [..., ",
              dims > 1 ? "T, " : "", names.size(), "]", names.empty() ? "" : ": ", c10::Join(", ", names), "; got ",
              x.sizes());
}

LCP_LIBRARY_FRAGMENT(library) {
  ops::define<simulate_step>(library, "_simulate_step(step, parameters, x, u, *, options=, feedback)");
  ops::define_plain<std::string>(library, "_names_of_step(step)", LCP_CALL(names_of_step));
}

}  // namespace
}  // namespace physics

StepNames names_of_step(const std::string& step) { return ops::registered_step(step).names(); }

StepRollout simulate_step(const std::string& step, const at::Tensor& parameters, const at::Tensor& x,
                          const at::Tensor& u, const SimulateStepOptions& options,
                          const std::optional<Feedback<at::Tensor>>& feedback) {
  const detail::RegisteredStep& formulas = ops::registered_step(step);
  const StepNames names = formulas.names();
  physics::check_numbers("parameters", parameters, 1, names.parameters);
  physics::check_numbers("x", x, 1, names.states);
  physics::check_numbers("u", u, 2, names.inputs);
  ops::StepWriter text(step);
  text.add("ties", std::string_view(options.ties)).add("tolerance", options.tolerance);
  if (options.kappa != 0) text.add("kappa", options.kappa);
  const physics::Tensors results =
      ops::roll_out(text.text(), {parameters, x, u, at::zeros({2, formulas.sizes().pairs}, parameters.options())},
                    ops::feedback_of(feedback, x, u));
  return {results[0], results[1], results[2], results[4], results[3]};
}

namespace detail {

void register_step(std::string name, std::unique_ptr<const detail::RegisteredStep> step) {
  ops::add_step(name, std::move(step));
  ops::RegisterByTensors(name, physics::own_step_by_tensors);
}

}  // namespace detail
}  // namespace lcp
