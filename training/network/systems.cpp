#include "network/systems.h"

#include <ATen/ATen.h>

#include <cmath>
#include <numbers>
#include <utility>

#include "lcp/identification/least_squares.h"
#include "lcp/physics/planar_block.h"
#include "lcp/physics/sliding_block.h"
#include "lcp/solve.h"
#include "sliding_block/samples.h"

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

// One of the factors, for all samples: [..., 1].
Tensor factor(const Tensor& factors, std::int64_t number) { return factors.slice(-1, number, number + 1); }

// s less what friction of at most `limit` takes from it.
Tensor slowed(const Tensor& s, const Tensor& limit) { return (s - limit).relu() - (-s - limit).relu(); }

MotionSystem sliding(const PhysicsFlags& flags) {
  const Units unit(flags);
  return {"sliding_block",
          "a block on level ground",
          {{}, {"v"}, {"u"}, {"v_next"}},
          [=](std::int64_t count, const at::Generator& generator) { return states(count, 1, unit, generator); },
          {"mass", "mu"},
          [=](const Tensor& x, const Tensor& factors) {
            physics::SlidingBlock block = sliding_block(flags);
            block.mass = block.mass * factor(factors, 0);
            block.mu = block.mu * factor(factors, 1);
            return physics::exact_step(x.select(-1, 0), x.select(-1, 1), block).v_next.unsqueeze(-1);
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
      {"mass", "mean friction", "variation of friction"},
      [=](const Tensor& x, const Tensor& factors) {
        const Tensor limit =
            unit.velocity * (factor(factors, 1) + factor(factors, 2) * (2 * x.select(-1, 0) / unit.position).sin() / 2);
        const Tensor free = x.select(-1, 1) + flags.dt / (flags.mass * factor(factors, 0)) * x.select(-1, 2);
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
          {"mass", "sliding friction", "static friction above it", "Stribeck velocity", "slope", "drag"},
          [=](const Tensor& x, const Tensor& factors) {
            const Tensor v = x.select(-1, 0) / unit.velocity, u = x.select(-1, 1) / unit.force;
            const Tensor limit = 0.6 * factor(factors, 1) +
                                 0.6 * factor(factors, 2) * (-(v / (0.4 * factor(factors, 3))).square()).exp();
            const Tensor free =
                v + u / factor(factors, 0) + 0.1 * factor(factors, 4) - 0.1 * factor(factors, 5) * v * v.abs();
            return unit.velocity * slowed(free, limit).unsqueeze(-1);
          },
          nullptr};
}

MotionSystem planar(const PhysicsFlags& flags, std::int64_t directions) {
  const Units unit(flags);
  const auto block = physics::PlanarBlock::of(flags.mass, flags.dt, flags.mu, flags.gravity);
  physics::PlanarBlockOptions options;
  options.formulation = physics::PlanarBlockFormulation::kPolyhedral;
  options.directions = directions;
  return {"planar_block",
          "a block on a plane, with polyhedral friction in --directions",
          {{}, {"v_x", "v_y"}, {"u_x", "u_y"}, {"v_next_x", "v_next_y"}},
          [=](std::int64_t count, const at::Generator& generator) { return states(count, 2, unit, generator); },
          {"mass", "mu"},
          [=](const Tensor& x, const Tensor& factors) {
            physics::PlanarBlock scaled = block;
            scaled.mass = block.mass * factor(factors, 0);
            scaled.mu = block.mu * factor(factors, 1);
            return physics::step(x.slice(-1, 0, 2), x.slice(-1, 2, 4), scaled, options).step.v_next;
          },
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
          {"gravity", "mu", "restitution"},
          [=](const Tensor& x, const Tensor& factors) {
            const Tensor y = x.select(-1, 0), v_x = x.select(-1, 1), v_y = x.select(-1, 2);
            const Tensor free = v_y - speed * factor(factors, 0),
                         least = factor(factors, 2) * (-v_y).relu() / 2 - y / flags.dt;
            const Tensor impulse = (least - free).relu();
            return at::stack(
                {slowed(v_x, flags.mu * factor(factors, 1) * impulse), at::where(impulse > 0, least, free)}, -1);
          },
          [=](const Tensor& x, const Tensor& v_next) { return x.slice(-1, 0, 1) + flags.dt * v_next.slice(-1, 1, 2); }};
}

// A block of half the mass on a block, with friction 1.5 mu between them and mu on the ground.
MotionSystem stacked(const PhysicsFlags& flags) {
  const Units unit(flags);
  const Tensor masses = torch::tensor({flags.mass, flags.mass / 2}, torch::kDouble);
  const Tensor coefficients = torch::tensor({flags.mu, 1.5 * flags.mu}, torch::kDouble);
  // In the order of the motion relative to the ground and to the other block, each along + and -.
  const Tensor D = torch::tensor({{1., -1., -1., 1.}, {0., 0., 1., -1.}}, torch::kDouble);
  const Tensor E = torch::tensor({{1., 0.}, {1., 0.}, {0., 1.}, {0., 1.}}, torch::kDouble);
  const Tensor cone = at::cat(
      {at::cat({at::zeros({4, 4}, torch::kDouble), E}, 1), at::cat({-E.t(), at::zeros({2, 2}, torch::kDouble)}, 1)});
  return {"stacked_blocks",
          "a block on a block on the ground",
          {{}, {"v_1", "v_2"}, {"u_1", "u_2"}, {"v_next_1", "v_next_2"}},
          [=](std::int64_t count, const at::Generator& generator) { return states(count, 2, unit, generator); },
          {"lower mass", "upper mass", "mu on the ground", "mu between the blocks"},
          [=](const Tensor& x, const Tensor& factors) {
            const Tensor mass = masses * factors.slice(-1, 0, 2), mu = coefficients * factors.slice(-1, 2, 4);
            const Tensor response = flags.dt / mass;  // of the velocities to forces
            const Tensor M = cone + at::constant_pad_nd(at::matmul(D.t(), response.unsqueeze(-1) * D), {0, 2, 0, 2});
            const Tensor loads = flags.gravity * at::stack({mass.sum(-1), mass.select(-1, 1)}, -1);
            const Tensor free = x.slice(-1, 0, 2) + response.unsqueeze(-2) * x.slice(-1, 2, 4);
            const Tensor along = (free.unsqueeze(-1) * D).sum(-2), limits = (mu * loads).unsqueeze(-2);
            const Tensor q = at::cat({along, limits.expand_as(along.slice(-1, 0, 2))}, -1);
            const Tensor w = lcp::solve(M.unsqueeze(-3), q).w;
            const Tensor slide = (w.select(-1, 0) - w.select(-1, 1)) / 2;  // both w are 0 where it sticks
            const Tensor relative = (w.select(-1, 2) - w.select(-1, 3)) / 2;
            return at::stack({slide, slide + relative}, -1);
          },
          nullptr};
}

}  // namespace

Tensor MotionSystem::next(const Tensor& x) const {
  return model(x, torch::ones({static_cast<std::int64_t>(constants.size())}, torch::kDouble));
}

std::vector<MotionSystem> motion_systems(const PhysicsFlags& flags, std::int64_t directions) {
  return {sliding(flags), track(flags), stribeck(flags), planar(flags, directions), bouncing(flags), stacked(flags)};
}

Tensor fitted_factors(const MotionSystem& system, const Motion& motion) {
  const auto residuals = [&](const Tensor& factors) {
    return (system.model(motion.x, factors) - motion.v_next).flatten(-2);
  };
  const Tensor start = torch::ones({1, static_cast<std::int64_t>(system.constants.size())}, torch::kDouble);
  return identification::least_squares(residuals, start).theta[0];
}

}  // namespace lcp::training
