#include "physics/compliant_ground.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include <cstddef>
#include <utility>

#include "lcp/certify_contact.h"
#include "physics/compliant_walk.h"

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

CompliantSolution step_by_step(const CompliantState& first, const Tensor& u, const CompliantBody& body,
                               const ContactOptions& options) {
  const auto rollout = roll_out(
      {first.position, first.velocity}, u, leading(u).slice(1).vec(),
      {[&](const Tensors& now, const Tensor& force, const Tensor& poison) -> Solved {
         CompliantProblem p = body.problem({now[0], now[1]}, force, body.parameters);
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
                                     const ContactOptions& options) {
  TORCH_CHECK(!options.guess, "options.guess must be empty: each step of a rollout starts from the last velocity");
  const Tensor inputs = inputs_of(state, u, body), position = state.position.to(state.velocity.scalar_type());
  const Shape batch = leading(inputs).slice(1).vec();
  const CompliantState first = {expanded(position, batch, {3}), expanded(state.velocity, batch, {3})};
  return can_walk(first, inputs, body, options) ? walk(first, inputs, body, options)
                                                : step_by_step(first, inputs, body, options);
}

RolloutCertificate certify_compliant(const CompliantState& state, const Tensor& u, const CompliantBody& body,
                                     const CompliantSolution& rollout, double tolerance) {
  const c10::NoGradGuard no_grad;
  const CompliantState& next = rollout.step.next;
  const CompliantState starts{starts_of(state.position, next.position), starts_of(state.velocity, next.velocity)};
  const CompliantProblem p = body.problem(starts, inputs_of(state, u, body), body.parameters);
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
