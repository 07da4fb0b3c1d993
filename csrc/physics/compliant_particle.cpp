#include "lcp/physics/compliant_particle.h"

#include <ATen/ATen.h>

#include "contact/tensor_cone.h"
#include "ops/rollout/rollout.h"
#include "physics/compliant_ground.h"

namespace lcp::physics {
namespace {

using at::Tensor;

constexpr std::int64_t kZ = 2;

CompliantParticle in_precision_of(const Tensor& v, const CompliantParticle& particle) {
  const auto dtype = v.scalar_type();
  return {positive_or_nan(particle.mass.to(dtype)), particle.dt, nonnegative_or_nan(particle.gravity.to(dtype)),
          in_precision_of(dtype, particle.ground)};
}

Tensor inertia(const CompliantParticle& particle) { return vector_of({particle.mass, particle.mass, particle.mass}); }

// The sum of u and the weight, [..., 3].
Tensor forces(const Tensor& u, const CompliantParticle& particle) {
  const Tensor weight = particle.mass * particle.gravity, none = at::zeros_like(weight);
  return u.to(weight.scalar_type()) + vector_of({none, none, -weight});
}

Tensor free_velocity(const CompliantState& state, const Tensor& u, const CompliantParticle& particle) {
  return state.velocity + particle.dt * forces(u, particle) / particle.mass.unsqueeze(-1);
}

// The step in which the contact has the impulse gamma.
CompliantStep step_under(const CompliantState& state, const Tensor& v_free, const Tensor& gamma,
                         const CompliantParticle& particle) {
  return {moved(state, v_free + gamma / particle.mass.unsqueeze(-1), particle.dt), gamma};
}

constexpr const char* kParticle = "compliant_particle";  // the kind of its rollouts

CompliantProblem particle_problem(const CompliantState& state, const Tensor& u, const CompliantBody& body) {
  const Tensors& p = body.parameters;
  return contact_problem(state, u, CompliantParticle{p[0], body.dt, p[1], ground_of(p, body.regularization)});
}

CompliantBody body_of(const CompliantParticle& particle) {
  const CompliantGround& ground = particle.ground;
  return {kParticle,
          {positive_or_nan(particle.mass), nonnegative_or_nan(particle.gravity), nonnegative_or_nan(ground.mu),
           positive_or_nan(ground.stiffness), nonnegative_or_nan(ground.dissipation)},
          particle.dt,
          ground.regularization,
          particle_problem};
}

Tensors particle_by_tensors(const ops::StepText& step, const Tensors& inputs) {
  return by_tensors(step, inputs, {kParticle, {}, 0, {}, particle_problem});
}

const ops::RegisterByTensors registered_particle(kParticle, particle_by_tensors);

}  // namespace

CompliantParticle CompliantParticle::of(double mass, double dt, double gravity, const CompliantGround& ground) {
  return {positive_parameter("mass", mass), positive_number("dt", dt), nonnegative_parameter("gravity", gravity),
          ground};
}

CompliantProblem contact_problem(const CompliantState& state, const Tensor& u, const CompliantParticle& parameters) {
  const CompliantParticle particle = in_precision_of(state.velocity, parameters);
  const Contacts contacts{at::eye(3, state.velocity.options()), gaps(state, particle)};
  return ground_problem(state.velocity, forces(u, particle), inertia(particle), contacts, particle.dt, particle.ground);
}

CompliantStep exact_step(const CompliantState& state, const Tensor& u, const CompliantParticle& parameters) {
  const CompliantParticle particle = in_precision_of(state.velocity, parameters);
  const CompliantProblem p = contact_problem(state, u, particle);
  const Tensor W_R = p.R + 1 / particle.mass.unsqueeze(-1);
  const contact::TensorCone cone((p.v_hat - p.v_free) / W_R, W_R.select(-1, 0), W_R.select(-1, kZ), p.mu.squeeze(-1));
  return step_under(state, p.v_free, cone.gamma, particle);
}

CompliantStep rigid_step(const CompliantState& state, const Tensor& u, const CompliantParticle& parameters) {
  const CompliantParticle particle = in_precision_of(state.velocity, parameters);
  const Tensor v_free = free_velocity(state, u, particle), v_z = v_free.select(-1, kZ);
  const Tensor normal = particle.mass * positive_part(-state.position.select(-1, kZ) / particle.dt - v_z);
  const Tensor v_t = v_free.narrow(-1, 0, 2), slip = v_t.norm(2, {-1});
  const Tensor friction = at::minimum(particle.mass * slip, particle.ground.mu * normal);
  const Tensor tangent = -(friction / at::where(slip > 0, slip, 1)).unsqueeze(-1) * v_t;
  return step_under(state, v_free, at::cat({tangent, normal.unsqueeze(-1)}, -1), particle);
}

Tensor gaps(const CompliantState& state, const CompliantParticle&) { return state.position.narrow(-1, kZ, 1); }

CompliantSolution step(const CompliantState& state, const Tensor& u, const CompliantParticle& particle,
                       const ContactOptions& options) {
  return first_step(simulate(state, u.unsqueeze(0), particle, options));
}

CompliantSolution simulate(const CompliantState& state, const Tensor& u, const CompliantParticle& particle,
                           const ContactOptions& options, const std::optional<Feedback<CompliantState>>& feedback) {
  return roll_out_compliant(state, u, body_of(particle), options, feedback);
}

RolloutCertificate certify_rollout(const CompliantState& state, const Tensor& u, const CompliantParticle& particle,
                                   const CompliantSolution& rollout, double tolerance) {
  return certify_compliant(state, u, body_of(particle), rollout, tolerance);
}

}  // namespace lcp::physics
