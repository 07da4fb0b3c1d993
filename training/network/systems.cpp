#include "network/systems.h"

#include <ATen/ATen.h>

#include <cmath>
#include <numbers>
#include <utility>

#include "lcp/physics/planar_block.h"
#include "lcp/physics/sliding_block.h"
#include "lcp/solve.h"
#include "sliding_block/trajectories.h"

namespace lcp::training {
namespace {

using torch::Tensor;

// The units of the random states: the largest friction force, the velocity that it gives in a step, the way of a step.
struct Units {
  explicit Units(const PhysicsFlags& flags)
      : force(flags.max_friction()), velocity(flags.dt * force / flags.mass), position(flags.dt * velocity) {}
  double force, velocity, position;
};

Tensor normal(std::int64_t count, std::int64_t columns, const at::Generator& generator) {
  return torch::randn({count, columns}, generator, torch::kDouble);
}

// Normal velocities and inputs of d bodies, [count, 2 d].
Tensor states(std::int64_t count, std::int64_t d, const Units& unit, const at::Generator& generator) {
  const Tensor units = torch::tensor({unit.velocity, unit.force}, torch::kDouble).repeat_interleave(d);
  return normal(count, 2 * d, generator) * units;
}

Tensor uniform(std::int64_t count, const at::Generator& generator) {
  return torch::rand({count}, generator, torch::kDouble);
}

// s less what friction of at most `limit` takes from it.
Tensor slowed(const Tensor& s, const Tensor& limit) { return (s - limit).relu() - (-s - limit).relu(); }

MotionSystem sliding(const PhysicsFlags& flags) {
  const Units unit(flags);
  return {"sliding_block",
          "a block on level ground",
          {{}, {"v"}, {"u"}, {"v_next"}},
          [=](std::int64_t count, const at::Generator& generator) { return states(count, 1, unit, generator); },
          [=](const Tensor& x) {
            return physics::exact_step(x.select(-1, 0), x.select(-1, 1), sliding_block(flags)).v_next.unsqueeze(-1);
          },
          nullptr};
}

// On a circular track of length pi position units, friction is mu (1 + sin(2 x) / 2).
MotionSystem track(const PhysicsFlags& flags) {
  const Units unit(flags);
  const double length = std::numbers::pi * unit.position;
  return {
      "track",
      "a block on a circular track whose friction depends on the position",
      {{"x"}, {"v"}, {"u"}, {"v_next"}},
      [=](std::int64_t count, const at::Generator& generator) {
        const Tensor state = states(count, 1, unit, generator);
        return at::cat({(length * uniform(count, generator)).unsqueeze(-1), state}, -1);
      },
      [=](const Tensor& x) {
        const Tensor limit = unit.velocity * (1 + (2 * x.select(-1, 0) / unit.position).sin() / 2);
        const Tensor free = x.select(-1, 1) + flags.dt / flags.mass * x.select(-1, 2);
        return slowed(free, limit).unsqueeze(-1);
      },
      [=](const Tensor& x, const Tensor& v_next) { return (x.slice(-1, 0, 1) + flags.dt * v_next).remainder(length); }};
}

// Coefficients in units of mu: .6 while it slides fast, 1.2 at rest; the Stribeck velocity, quadratic drag and the
// slope are in units, too.
MotionSystem stribeck(const PhysicsFlags& flags) {
  const Units unit(flags);
  return {"stribeck",
          "a block on a slope with Stribeck friction and quadratic drag",
          {{}, {"v"}, {"u"}, {"v_next"}},
          [=](std::int64_t count, const at::Generator& generator) { return states(count, 1, unit, generator); },
          [=](const Tensor& x) {
            const Tensor v = x.select(-1, 0) / unit.velocity, u = x.select(-1, 1) / unit.force;
            const Tensor limit = 0.6 + 0.6 * (-(v / 0.4).square()).exp();
            return unit.velocity * slowed(v + u + 0.1 - 0.1 * v * v.abs(), limit).unsqueeze(-1);
          },
          nullptr};
}

MotionSystem planar(const PhysicsFlags& flags, std::int64_t directions) {
  const Units unit(flags);
  const auto block = physics::PlanarBlock::of(flags.mass, flags.dt, flags.mu, flags.gravity);
  physics::PlanarBlockOptions options;
  options.formulation = physics::PlanarBlockFormulation::kPolyhedral;
  options.directions = directions;
  return {
      "planar_block",
      "a block on a plane, with polyhedral friction in --directions",
      {{}, {"v_x", "v_y"}, {"u_x", "u_y"}, {"v_next_x", "v_next_y"}},
      [=](std::int64_t count, const at::Generator& generator) { return states(count, 2, unit, generator); },
      [=](const Tensor& x) { return physics::step(x.slice(-1, 0, 2), x.slice(-1, 2, 4), block, options).step.v_next; },
      nullptr};
}

// A mass that falls on the ground, hits it, bounces with restitution 1/2, slides and sticks:
// v_y >= max(0, -v_y) / 2 - y / dt after the step, by an impulse whose friction acts on v_x.
MotionSystem bouncing(const PhysicsFlags& flags) {
  const double speed = flags.dt * flags.gravity;
  return {"bouncing_mass",
          "a mass that falls, hits the ground, bounces, slides and sticks",
          {{"y"}, {"v_x", "v_y"}, {}, {"v_next_x", "v_next_y"}},
          [=](std::int64_t count, const at::Generator& generator) {
            // Half of the masses are on the ground, half of these without a vertical velocity.
            const Tensor kind = uniform(count, generator);
            const Tensor y = at::where(kind < 0.5, 0, 6 * flags.dt * speed * uniform(count, generator));
            const Tensor v = normal(count, 2, generator) * torch::tensor({speed, 3 * speed}, torch::kDouble);
            return at::stack({y, v.select(-1, 0), at::where(kind < 0.25, 0, v.select(-1, 1))}, -1);
          },
          [=](const Tensor& x) {
            const Tensor y = x.select(-1, 0), v_x = x.select(-1, 1), v_y = x.select(-1, 2);
            const Tensor free = v_y - speed, least = (-v_y).relu() / 2 - y / flags.dt;
            const Tensor impulse = (least - free).relu();
            return at::stack({slowed(v_x, flags.mu * impulse), at::where(impulse > 0, least, free)}, -1);
          },
          [=](const Tensor& x, const Tensor& v_next) { return x.slice(-1, 0, 1) + flags.dt * v_next.slice(-1, 1, 2); }};
}

// A block of half the mass on a block, with friction 1.5 mu between them and mu on the ground.
MotionSystem stacked(const PhysicsFlags& flags) {
  const Units unit(flags);
  const double below = flags.mass, above = flags.mass / 2;
  // In the order of the motion relative to the ground and to the other block, each along + and -.
  const Tensor D = torch::tensor({{1., -1., -1., 1.}, {0., 0., 1., -1.}}, torch::kDouble);
  const Tensor response = torch::tensor({flags.dt / below, flags.dt / above}, torch::kDouble).unsqueeze(-1) * D;
  const Tensor E = torch::tensor({{1., 0.}, {1., 0.}, {0., 1.}, {0., 1.}}, torch::kDouble);
  const Tensor M = at::cat(
      {at::cat({at::matmul(D.t(), response), E}, 1), at::cat({-E.t(), torch::zeros({2, 2}, torch::kDouble)}, 1)});
  const Tensor limits = torch::tensor(
      {flags.mu * (below + above) * flags.gravity, 1.5 * flags.mu * above * flags.gravity}, torch::kDouble);
  return {"stacked_blocks",
          "a block on a block on the ground",
          {{}, {"v_1", "v_2"}, {"u_1", "u_2"}, {"v_next_1", "v_next_2"}},
          [=](std::int64_t count, const at::Generator& generator) { return states(count, 2, unit, generator); },
          [=](const Tensor& x) {
            const Tensor free =
                x.slice(-1, 0, 2) + flags.dt * x.slice(-1, 2, 4) / torch::tensor({below, above}, torch::kDouble);
            const Tensor q = at::cat({(free.unsqueeze(-1) * D).sum(-2), limits.expand_as(free)}, -1);
            const Tensor w = lcp::solve(M, q).w;
            const Tensor slide = (w.select(-1, 0) - w.select(-1, 1)) / 2;  // both w are 0 where it sticks
            const Tensor relative = (w.select(-1, 2) - w.select(-1, 3)) / 2;
            return at::stack({slide, slide + relative}, -1);
          },
          nullptr};
}

}  // namespace

std::vector<MotionSystem> motion_systems(const PhysicsFlags& flags, std::int64_t directions) {
  return {sliding(flags), track(flags), stribeck(flags), planar(flags, directions), bouncing(flags), stacked(flags)};
}

}  // namespace lcp::training
