#include "lcp/physics/compliant_block.h"

#include <ATen/ATen.h>

#include "ops/rollout/rollout.h"
#include "physics/compliant_ground.h"

namespace lcp::physics {
namespace {

using at::Tensor;

constexpr std::int64_t kCorners = 4;

CompliantBlock in_precision_of(const Tensor& v, const CompliantBlock& block) {
  const auto dtype = v.scalar_type();
  return {positive_or_nan(block.mass.to(dtype)),       positive_or_nan(block.width.to(dtype)),
          positive_or_nan(block.height.to(dtype)),     block.dt,
          nonnegative_or_nan(block.gravity.to(dtype)), in_precision_of(dtype, block.ground)};
}

Tensor inertia(const CompliantBlock& block) {
  const Tensor turning = block.mass * (block.width * block.width + block.height * block.height) / 12;
  return vector_of({block.mass, block.mass, turning});
}

// The sum of u and the weight, [..., 3].
Tensor forces(const Tensor& u, const CompliantBlock& block) {
  const Tensor weight = block.mass * block.gravity, none = at::zeros_like(weight);
  return u.to(weight.scalar_type()) + vector_of({none, -weight, none});
}

Contacts corners(const CompliantState& state, const CompliantBlock& block) {
  const Tensor w = block.width / 2, h = block.height / 2;
  const Tensor across = vector_of({-w, w, -w, w}), up = vector_of({-h, -h, h, h});
  const Tensor angle = state.position.select(-1, 2).unsqueeze(-1), c = angle.cos(), s = angle.sin();
  const Tensor r_x = c * across - s * up, r_z = s * across + c * up;  // [..., 4]
  const Tensor one = at::ones_like(r_x), zero = at::zeros_like(r_x);
  const Tensor rows = matrix_of(
      {vector_of({one, zero, -r_z}), vector_of({zero, zero, zero}), vector_of({zero, one, r_x})});  // [..., 4, 3, 3]
  return {rows.flatten(-3, -2), state.position.select(-1, 1).unsqueeze(-1) + r_z};
}

// J' gamma, and J v, for each element.
Tensor to_bodies(const Tensor& J, const Tensor& gamma) { return (J * gamma.unsqueeze(-1)).sum(-2); }
Tensor to_contacts(const Tensor& J, const Tensor& v) { return (J * v.unsqueeze(-2)).sum(-1); }

// L A^-1 R' for L, [..., l, 3], and R, [..., r, 3], and a diagonal matrix A, of which the diagonal is given.
Tensor between(const Tensor& left, const Tensor& right, const Tensor& inertia) {
  return (left.unsqueeze(-2) * (right / inertia.unsqueeze(-2)).unsqueeze(-3)).sum(-1);
}

// The entries of x of one axis of each contact, where dimension `dim` of x has three for each contact: 0 and 1 are the
// tangents, 2 is the normal.
Tensor of_axis(const Tensor& x, std::int64_t axis, std::int64_t dim = -1) {
  return x.slice(dim, axis, 3 * kCorners, 3);
}

// The step in which the contacts have the impulses gamma.
CompliantStep step_under(const CompliantState& state, const CompliantProblem& problem, const Tensor& gamma,
                         const CompliantBlock& block) {
  const Tensor v_next = problem.v_free + to_bodies(problem.J, gamma) / inertia(block);
  return {moved(state, v_next, block.dt), gamma};
}

// The tangential component of each of the two edges of each contact's cone, -mu and mu: [..., 2 c].
Tensor edges(const Tensor& mu) { return vector_of({-mu, mu}).flatten(-2); }

constexpr const char* kBlock = "compliant_block";  // the kind of its rollouts

CompliantProblem block_problem(const CompliantState& state, const Tensor& u, const CompliantBody& body) {
  const Tensors& p = body.parameters;
  return contact_problem(state, u, CompliantBlock{p[0], p[1], p[2], body.dt, p[3], ground_of(p, body.regularization)});
}

CompliantBody body_of(const CompliantBlock& block) {
  const CompliantGround& ground = block.ground;
  return {kBlock,
          {positive_or_nan(block.mass), positive_or_nan(block.width), positive_or_nan(block.height),
           nonnegative_or_nan(block.gravity), nonnegative_or_nan(ground.mu), positive_or_nan(ground.stiffness),
           nonnegative_or_nan(ground.dissipation)},
          block.dt,
          ground.regularization,
          block_problem};
}

Tensors block_by_tensors(const ops::StepText& step, const Tensors& inputs) {
  return by_tensors(step, inputs, {kBlock, {}, 0, {}, block_problem});
}

const ops::RegisterByTensors registered_block(kBlock, block_by_tensors);

}  // namespace

CompliantBlock CompliantBlock::of(double mass, double width, double height, double dt, double gravity,
                                  const CompliantGround& ground) {
  return {positive_parameter("mass", mass),          positive_parameter("width", width),
          positive_parameter("height", height),      positive_number("dt", dt),
          nonnegative_parameter("gravity", gravity), ground};
}

CompliantProblem contact_problem(const CompliantState& state, const Tensor& u, const CompliantBlock& parameters) {
  const CompliantBlock block = in_precision_of(state.velocity, parameters);
  return ground_problem(state.velocity, forces(u, block), inertia(block), corners(state, block), block.dt,
                        block.ground);
}

Problem dual_problem(const CompliantState& state, const Tensor& u, const CompliantBlock& parameters) {
  const CompliantBlock block = in_precision_of(state.velocity, parameters);
  const CompliantProblem p = contact_problem(state, u, block);
  // E' J has a row for each edge: the row of the normal plus the slope times the row of the tangent.
  const auto twice = [](const Tensor& x, std::int64_t dim) { return x.repeat_interleave(2, dim); };
  const Tensor slope = edges(p.mu), tangent = twice(of_axis(p.J, 0, -2), -2), normal = twice(of_axis(p.J, 2, -2), -2);
  const Tensor rows = normal + slope.unsqueeze(-1) * tangent;
  const Tensor R_t = twice(of_axis(p.R, 0), -1), R_n = twice(of_axis(p.R, 2), -1);
  // E' R E couples the two edges of a contact, and no edges of different contacts.
  const Tensor same_contact = at::eye(kCorners, rows.options()).repeat_interleave(2, 0).repeat_interleave(2, 1);
  const Tensor compliance =
      same_contact * (R_n.unsqueeze(-1) + R_t.unsqueeze(-1) * slope.unsqueeze(-1) * slope.unsqueeze(-2));
  const Tensor v_hat = twice(of_axis(p.v_hat, 2), -1);
  return {between(rows, rows, inertia(block)) + compliance, to_contacts(rows, p.v_free) - v_hat};
}

Problem rigid_problem(const CompliantState& state, const Tensor& u, const CompliantBlock& parameters) {
  const CompliantBlock block = in_precision_of(state.velocity, parameters);
  const CompliantProblem p = contact_problem(state, u, block);
  const Tensor T = of_axis(p.J, 0, -2), N = of_axis(p.J, 2, -2), rows = at::cat({N, T, -T}, -2);
  const Tensor W = between(rows, rows, inertia(block));
  const Tensor one = at::eye(kCorners, W.options()).expand_as(between(N, N, inertia(block))),
               zero = at::zeros_like(one);
  const Tensor right = at::cat({zero, one, one}, -2);
  const Tensor below = at::cat({p.mu.unsqueeze(-1) * one, -one, -one, zero}, -1);
  const Tensor gap = gaps(state, block) / block.dt;
  const Tensor slide = to_contacts(T, p.v_free);
  return {at::cat({at::cat({W, right}, -1), below}, -2),
          at::cat({to_contacts(N, p.v_free) + gap, slide, -slide, at::zeros_like(slide)}, -1)};
}

CompliantStep read_dual(const CompliantState& state, const Tensor& u, const Tensor& z,
                        const CompliantBlock& parameters) {
  const CompliantBlock block = in_precision_of(state.velocity, parameters);
  const CompliantProblem p = contact_problem(state, u, block);
  const auto per_contact = [](const Tensor& x) { return x.unflatten(-1, {kCorners, 2}).sum(-1); };
  const Tensor tangent = per_contact(edges(p.mu) * z), normal = per_contact(z);
  return step_under(state, p, vector_of({tangent, at::zeros_like(tangent), normal}).flatten(-2), block);
}

CompliantStep read_rigid(const CompliantState& state, const Tensor& u, const Tensor& z,
                         const CompliantBlock& parameters) {
  const CompliantBlock block = in_precision_of(state.velocity, parameters);
  const auto part = [&](std::int64_t k) { return z.narrow(-1, k * kCorners, kCorners); };
  const Tensor tangent = part(1) - part(2);
  return step_under(state, contact_problem(state, u, block),
                    vector_of({tangent, at::zeros_like(tangent), part(0)}).flatten(-2), block);
}

Tensor gaps(const CompliantState& state, const CompliantBlock& block) {
  return corners(state, in_precision_of(state.velocity, block)).gap;
}

CompliantSolution step(const CompliantState& state, const Tensor& u, const CompliantBlock& block,
                       const ContactOptions& options) {
  return first_step(simulate(state, u.unsqueeze(0), block, options));
}

CompliantSolution simulate(const CompliantState& state, const Tensor& u, const CompliantBlock& block,
                           const ContactOptions& options, const std::optional<Feedback<CompliantState>>& feedback) {
  return roll_out_compliant(state, u, body_of(block), options, feedback);
}

RolloutCertificate certify_rollout(const CompliantState& state, const Tensor& u, const CompliantBlock& block,
                                   const CompliantSolution& rollout, double tolerance) {
  return certify_compliant(state, u, body_of(block), rollout, tolerance);
}

}  // namespace lcp::physics
