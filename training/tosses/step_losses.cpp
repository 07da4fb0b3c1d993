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
      : scene(scene_of(cubes, 1 / rate).scene), A(physics::mass_matrix(scene)) {
    const RigidState& measured = windows.measured;
    const Tensor from_center = -cubes.center.unsqueeze(-2);
    const auto before = [](const Tensor& first, const Tensor& all) {
      return at::cat({first.unsqueeze(0), all.slice(0, 0, -1)});
    };
    const RigidState& start = windows.start;
    now = identification::motion_of_points(
        {before(start.position, measured.position), before(start.orientation, measured.orientation),
         before(start.velocity, measured.velocity), before(start.angular_velocity, measured.angular_velocity)},
        from_center);
    next = identification::motion_of_points(measured, from_center);
    const Tensor omega = physics::gyroscopic(now.angular_velocity.squeeze(-2), scene.bodies.front().inertia, scene.dt);
    const Tensor v = now.velocity.squeeze(-2), drag = scene.bodies.front().drag.unsqueeze(-1);
    v_free = at::cat({v + scene.dt * (scene.gravity - drag * v), omega}, -1);
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
  constexpr double kRegularization = 1e-4;  // 1/kg
  constexpr double kRound = 1e-12;          // (m/s)^2: rounds the tip of |u_t|
  const Steps steps(cubes, windows, rate);
  const physics::RigidContacts end = physics::contacts(steps.next, steps.scene);
  const std::int64_t count = end.gap.size(-1);
  const Tensor mu = steps.scene.mu.expand({-1, count});
  const Tensor change = steps.v_next - steps.v_free;
  const Tensor u_t = times(end.J, steps.v_next).unflatten(-1, {-1, 3}).narrow(-1, 0, 2);
  const Tensor speed = (u_t.square().sum(-1) + kRound).sqrt(), gap = end.gap / (side / 2);

  // For each contact the columns of gap gamma_n and of |u_t| gamma_t + mu gamma_n u_t, [..., c, 3, 3].
  const Tensor none = at::zeros_like(gap), slips = mu.unsqueeze(-1) * u_t;
  const Tensor blocks = at::stack({at::stack({none, speed, none}, -1), at::stack({none, none, speed}, -1),
                                   at::stack({gap, slips.select(-1, 0), slips.select(-1, 1)}, -1)},
                                  -2);
  const Tensor terms = (blocks.unsqueeze(-2) * at::eye(count, gap.options()).view({count, 1, count, 1}))
                           .flatten(-2)
                           .flatten(-3, -2);  // [..., 3 c, 3 c]

  // All terms are squares of what is linear in gamma: the energy of a body whose velocity is all of it.
  const Tensor W = metric(side / 2), effect = end.J / steps.A.diagonal(0, -2, -1).unsqueeze(-2);  // J A^-1
  const Tensor inertia = at::cat({W, at::ones({3 * count}, W.options())});
  const Tensor free = at::cat({-change, at::zeros_like(terms.select(-1, 0))}, -1);
  const Tensor R = at::full({3 * count}, kRegularization, W.options());
  const ContactResult found =
      solve_contact(at::diag_embed(inertia), free, at::cat({W * effect, terms}, -1), at::zeros_like(R), R, mu);
  const Tensor solved = found.status == 0;
  const Tensor gamma = at::where(solved.unsqueeze(-1), found.gamma, 0).unsqueeze(-1);
  const Tensor error = change - (effect * gamma).sum(-2), overlap = gap.clamp_max(0);
  const Tensor losses = ((W * error.square()).sum(-1) + (terms * gamma).sum(-2).square().sum(-1) +
                         overlap.square().sum(-1) + (R * gamma.squeeze(-1).square()).sum(-1)) /
                        2;
  return mean_over_steps(losses.masked_fill(~solved, std::numeric_limits<double>::quiet_NaN()), windows);
}

}  // namespace lcp::training
