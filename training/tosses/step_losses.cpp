#include "tosses/step_losses.h"

#include <ATen/ATen.h>

#include <limits>
#include <tuple>

#include "lcp/friction_problem.h"
#include "lcp/learning/bilevel_loss.h"
#include "lcp/physics/rotation.h"
#include "lcp/solve_contact.h"

namespace lcp::training {
namespace {

using physics::RigidState;
using torch::Tensor;

// The steps of windows, [T, b, 1 body, ...], and what they are steps of.
struct Steps {
  RigidState now, next;
  physics::RigidScene scene;
  Tensor A;               // [b, 6, 6]
  Tensor v_free, v_next;  // [T, b, 6]

  Steps(const Cube& cubes, const Segments& windows, double rate)
      : scene(scene_of(cubes, {.substeps = 1}, 1 / rate)), A(physics::mass_matrix(scene)) {
    const auto measured = [](const Tensor& x) { return x.unsqueeze(-2); };
    next = {measured(windows.position), measured(windows.orientation), measured(windows.velocity),
            measured(windows.angular_velocity)};
    const auto before = [](const Tensor& first, const Tensor& all) {
      return at::cat({first.unsqueeze(0), all.slice(0, 0, -1)});
    };
    now = {before(windows.start.position, next.position), before(windows.start.orientation, next.orientation),
           before(windows.start.velocity, next.velocity),
           before(windows.start.angular_velocity, next.angular_velocity)};
    const Tensor omega = physics::gyroscopic(now.angular_velocity.squeeze(-2), scene.bodies.front().inertia, scene.dt);
    v_free = at::cat({now.velocity.squeeze(-2) + scene.dt * scene.gravity, omega}, -1);
    v_next = velocity(next);
  }

  static Tensor velocity(const RigidState& state) {
    return at::cat({state.velocity, state.angular_velocity}, -1).squeeze(-2);
  }
};

Tensor times(const Tensor& A, const Tensor& x) { return (A * x.unsqueeze(-2)).sum(-1); }

Tensor normal_part(const Tensor& x) { return x.unflatten(-1, {-1, 3}).select(-1, 2); }

// The weights of the errors of (v, omega), [6], with omega in units of 1 / length.
Tensor metric(double length) {
  return torch::tensor({1., 1., 1., length * length, length * length, length * length}, torch::kDouble);
}

Tensor mean_over_steps(const Tensor& losses, const Segments& windows) {
  return at::where(windows.exists(), losses, 0).sum(0) / windows.steps;
}

}  // namespace

Tensor StepLoss::bilevel(const Cube& cubes, const Segments& windows) const {
  constexpr std::int64_t kLowest = 4;
  const Steps steps(cubes, windows, rate);
  const physics::RigidContacts all = physics::contacts(steps.now, steps.scene);
  const Tensor lowest = std::get<1>(all.gap.topk(kLowest, -1, false));
  const Tensor gap = all.gap.gather(-1, lowest);
  const Tensor rows = all.J.unflatten(-2, {-1, 3});
  const Tensor index = lowest.unsqueeze(-1).unsqueeze(-1);
  const Tensor J = rows.gather(-3, index.expand({-1, -1, -1, 3, 6})).flatten(-3, -2);

  const Tensor speed = -normal_part(times(J, steps.v_free)), arrival = gap / steps.scene.dt;
  const Tensor threshold = 2 * steps.scene.dt * steps.scene.gravity.norm(2, {-1}, true);
  const Tensor impact = (speed > threshold) & (speed > arrival);
  const Tensor closing = at::where(impact, -steps.scene.restitution * speed, arrival);
  const Tensor none = at::zeros_like(closing);
  const Tensor b = at::stack({none, none, closing}, -1).flatten(-2), mu = steps.scene.mu.expand({-1, kLowest});
  const FrictionDirections around{.count = directions};
  const FrictionProblem problem = friction_problem(steps.A, steps.v_free, J, b, mu, around);

  // The motion is linear in the unknowns; one of them at a time gives the columns.
  const Tensor units = at::eye(problem.q.size(-1), problem.q.options());
  const Tensor effect =
      friction_motion(steps.A.unsqueeze(-3), at::zeros({6}, units.options()), J.unsqueeze(-3), units, around).v.mT();
  const Tensor weight = metric(side / 2).sqrt();
  const learning::BilevelLoss loss = learning::bilevel_loss(problem.M, problem.q, weight.unsqueeze(-1) * effect,
                                                            weight * (steps.v_next - steps.v_free), {.hard = true});
  return mean_over_steps(loss.value, windows);
}

Tensor StepLoss::contact_nets(const Cube& cubes, const Segments& windows) const {
  constexpr double kRegularization = 1e-2;  // 1/kg
  constexpr double kRound = 1e-12;          // (m/s)^2: rounds the tip of |u_t|
  const Steps steps(cubes, windows, rate);
  const physics::RigidContacts end = physics::contacts(steps.next, steps.scene);
  const Tensor mu = steps.scene.mu.expand({-1, end.gap.size(-1)});
  const Tensor change = steps.v_next - steps.v_free;
  const Tensor u = times(end.J, steps.v_next).unflatten(-1, {-1, 3}), u_t = u.narrow(-1, 0, 2);
  const Tensor speed = (u_t.square().sum(-1) + kRound).sqrt();
  const Tensor apart = end.gap.clamp_min(0) / steps.scene.dt, overlap = end.gap.clamp_max(0) / steps.scene.dt;
  const Tensor cost = at::cat({u_t, (apart + mu * speed).unsqueeze(-1)}, -1).flatten(-2);  // of the impulses

  // |change - B gamma|_W^2 / 2 with B = A^-1 J' is the energy of a body with the inertia W and contacts B' W.
  const Tensor W = metric(side / 2);
  const Tensor B_t = end.J / steps.A.diagonal(0, -2, -1).unsqueeze(-2);
  const Tensor R = at::full({cost.size(-1)}, kRegularization, cost.options());
  const ContactResult found = solve_contact(at::diag_embed(W), -change, W * B_t, -cost, R, mu);
  const Tensor solved = (found.status == 0).unsqueeze(-1);
  const Tensor gamma = at::where(solved, found.gamma, 0);
  const Tensor error = change - (B_t * gamma.unsqueeze(-1)).sum(-2);
  const Tensor losses = ((W * error.square()).sum(-1) + (R * gamma.square()).sum(-1) + overlap.square().sum(-1)) / 2 +
                        (gamma * cost).sum(-1);
  return mean_over_steps(losses.masked_fill(~solved.squeeze(-1), std::numeric_limits<double>::quiet_NaN()), windows);
}

}  // namespace lcp::training
