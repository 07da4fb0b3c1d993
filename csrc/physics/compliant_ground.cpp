#include "physics/compliant_ground.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include <cstddef>
#include <utility>

#include "lcp/certify_contact.h"
#include "ops/rollout/rollout.h"
#include "physics/rollout_operator.h"

namespace lcp::physics {
namespace {

using at::Tensor;

// u, [steps, ..., 3], expanded to [steps, batch..., 3], in the dtype of the velocity.
Tensor inputs_of(const CompliantState& state, const Tensor& u, const CompliantBody& body) {
  constexpr const char* kExpected = "u must be [steps, ..., 3]";
  TORCH_CHECK(u.dim() >= 2, kExpected, "; got ", u.sizes());
  Shape batch = common_shape({leading(state.position), leading(state.velocity), leading(u).slice(1)});
  for (const Tensor& parameter : body.parameters) batch = common_shape({batch, parameter.sizes()});
  return expanded_inputs(u.to(state.velocity.scalar_type()), batch, kExpected, {3});
}

CompliantSolution compliant_rollout(const CompliantState& first, const Inputs& inputs, const CompliantBody& body,
                                    const ContactOptions& options) {
  ops::StepWriter writer(body.kind);
  writer.add("dt", body.dt).add("sigma", body.regularization.sigma).add("beta", body.regularization.beta);
  writer.add("tolerance", options.tolerance).add("max_iterations", options.max_iterations);
  const auto number = [](const Tensor& x) { return x.to(at::kDouble); };
  Tensors feedback = inputs.feedback(6);
  for (Tensor& x : feedback) x = number(x);
  const Tensors results =
      ops::roll_out(writer.text(),
                    {number(at::stack(at::broadcast_tensors(body.parameters), -1)),
                     number(at::cat({first.position, first.velocity}, -1)), number(inputs.u).movedim(0, -2)},
                    feedback);
  const auto of_steps = [&](const Tensor& x) { return x.to(first.velocity.scalar_type()).movedim(-2, 0); };
  const Tensor next = of_steps(results[0]);
  return {{{next.slice(-1, 0, 3), next.slice(-1, 3)}, of_steps(results[1])},
          results[3].movedim(-1, 0),
          results[4].movedim(-1, 0)};
}

}  // namespace

CompliantGround CompliantGround::of(double mu, double stiffness, double dissipation,
                                    const RegularizationOptions& regularization) {
  return {nonnegative_parameter("mu", mu), positive_parameter("stiffness", stiffness),
          nonnegative_parameter("dissipation", dissipation), regularization};
}

CompliantGround in_precision_of(at::ScalarType dtype, const CompliantGround& ground) {
  return {nonnegative_or_nan(ground.mu.to(dtype)), positive_or_nan(ground.stiffness.to(dtype)),
          nonnegative_or_nan(ground.dissipation.to(dtype)), ground.regularization};
}

CompliantProblem ground_problem(const Tensor& velocity, const Tensor& f, const Tensor& inertia,
                                const Contacts& contacts, double dt, const CompliantGround& ground) {
  const Tensor v_free = velocity + dt * f / inertia;
  const Tensor A = at::diag_embed(inertia);
  // Every contact has the same parameters.
  const auto each = [&](const Tensor& x) { return x.unsqueeze(-1); };
  const auto [v_hat, R] = contact_parameters(contacts.gap, each(ground.stiffness), each(ground.dissipation),
                                             delassus_diagonal(A, contacts.J), dt, ground.regularization);
  const Tensor mu = each(ground.mu).expand(at::infer_size(each(ground.mu).sizes(), {contacts.gap.size(-1)}));
  return {A, v_free, contacts.J, v_hat, R, mu};
}

CompliantState moved(const CompliantState& state, const Tensor& v_next, double dt) {
  return {state.position + dt * v_next, v_next};
}

CompliantGround ground_of(const Tensors& parameters, const RegularizationOptions& regularization) {
  const std::size_t first = parameters.size() - 3;
  return {parameters[first], parameters[first + 1], parameters[first + 2], regularization};
}

CompliantSolution step_by_step(const CompliantState& first, const Inputs& inputs, const CompliantBody& body,
                               const ContactOptions& options) {
  const auto rollout = roll_out(
      {first.position, first.velocity}, inputs, leading(inputs.u).slice(1).vec(),
      {[&](const Tensors& now, const Tensor& force, const Tensor& poison) -> Solved {
         CompliantProblem p = body.problem({now[0], now[1]}, force, body);
         if (poison.defined()) p.v_free = p.v_free + poison.unsqueeze(-1);
         ContactOptions from_here = options;
         from_here.guess = now[1].detach();
         ContactResult result = solve_contact(p.A, p.v_free, p.J, p.v_hat, p.R, p.mu, from_here);
         return {{std::move(result.gamma), std::move(result.v), std::move(result.status)}, {result.iterations}};
       },
       [&](const Tensors& now, const Tensor&, const Solved& solved) -> Tensors {
         CompliantState next = moved({now[0], now[1]}, solved.result.w, body.dt);
         return {next.position, next.velocity};
       }});
  const auto marked = [&](const Tensor& x) { return with_failures(x, rollout.failure); };
  return {{{marked(rollout.ends[0]), marked(rollout.ends[1])}, marked(rollout.result.z)},
          rollout.result.status,
          rollout.extras[0]};
}

CompliantSolution roll_out_compliant(const CompliantState& state, const Tensor& u, const CompliantBody& body,
                                     const ContactOptions& options,
                                     const std::optional<Feedback<CompliantState>>& feedback) {
  TORCH_CHECK(!options.guess, "options.guess must be empty: each step of a rollout starts from the last velocity");
  const Inputs inputs = with_feedback(inputs_of(state, u, body), feedback, 3);
  const Tensor position = state.position.to(state.velocity.scalar_type());
  const Shape batch = leading(inputs.u).slice(1).vec();
  const CompliantState first = {expanded(position, batch, {3}), expanded(state.velocity, batch, {3})};
  Tensors all = body.parameters;
  all.insert(all.end(), {first.position, first.velocity, inputs.u});
  return !options.sizes && can_roll_out(all) ? compliant_rollout(first, inputs, body, options)
                                             : step_by_step(first, inputs, body, options);
}

Tensors by_tensors(const ops::StepText& step, const Tensors& inputs, CompliantBody body) {
  body.dt = step.number("dt");
  body.regularization = {.sigma = step.number("sigma"), .beta = step.number("beta")};
  body.parameters = inputs[0].unbind(-1);
  ContactOptions options;
  options.tolerance = step.number_if("tolerance");
  options.max_iterations = step.count_if("max_iterations");
  const Tensor& x = inputs[1];
  const CompliantStep all =
      step_by_step({x.slice(-1, 0, 3), x.slice(-1, 3)}, inputs[2].movedim(-2, 0), body, options).step;
  return {at::cat({all.next.position, all.next.velocity}, -1).movedim(0, -2), all.gamma.movedim(0, -2)};
}

RolloutCertificate certify_compliant(const CompliantState& state, const Tensor& u, const CompliantBody& body,
                                     const CompliantSolution& rollout, double tolerance) {
  const c10::NoGradGuard no_grad;
  const CompliantState& next = rollout.step.next;
  const CompliantState starts{starts_of(state.position, next.position), starts_of(state.velocity, next.velocity)};
  const CompliantProblem p = body.problem(starts, inputs_of(state, u, body), body);
  const Tensor margin = certify_contact(p.A, p.v_free, p.J, p.v_hat, p.R, p.mu, next.velocity).margin;
  const Tensor solved = rollout.status == 0;
  const Tensor tied = (solved & (margin <= tolerance)).sum(0);
  return {(~solved).sum(0), tied, tied.clone()};
}

CompliantSolution first_step(const CompliantSolution& rollout) {
  const CompliantStep& step = rollout.step;
  return {{{step.next.position[0], step.next.velocity[0]}, step.gamma[0]}, rollout.status[0], rollout.iterations[0]};
}

}  // namespace lcp::physics
