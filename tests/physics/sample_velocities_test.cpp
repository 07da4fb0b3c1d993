#include "lcp/physics/sample_velocities.h"

#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <cmath>

#include "support/rigid_scenes.h"
#include "support/tensors.h"

namespace lcp::physics::sample_velocities_test {

using testing::kGravity;
using testing::largest;
using testing::no_forces;
using testing::number;
using testing::numbers;
using testing::scene_of;
using torch::Tensor;

constexpr double kStep = 0.01;
constexpr double kMu = 0.3;

RigidScene block(double restitution = 0) {
  return scene_of({RigidBody::box(1, {0.1, 0.1, 0.1})}, kStep, kMu, restitution);
}

// A box whose lower face is at this height, m, with this velocity, m/s.
RigidState at(double height, const Tensor& velocity) {
  RigidState state = RigidState::at_rest(numbers({0, 0, 0.05 + height}).view({1, 3}));
  state.velocity = velocity.view({1, 3});
  return state;
}

Tensor change(const RigidState& later, const RigidState& state) { return (later.velocity - state.velocity).squeeze(0); }

Tensor none() { return torch::zeros({1, 6}, torch::kDouble); }

TEST(SampleVelocitiesTest, KnowGravityForcesAndFriction) {
  const RigidState flying = at(1, numbers({1, 0, 3})), sliding = at(0, numbers({2, 0, 0}));
  Tensor u = none();
  u[0][1] = 5;  // N
  const double fall = -kGravity * kStep / 2;
  EXPECT_LT(largest(change(at_samples(flying, u, block()), flying) - numbers({0, 5 * kStep / 2, fall})), 1e-12);
  EXPECT_LT(largest(change(at_mid_steps(flying, u, block()), flying) + numbers({0, 5 * kStep / 2, fall})), 1e-12);
  for (const auto formulation : {RigidFormulation::kExactCone, RigidFormulation::kPolyhedral}) {
    RigidOptions options;
    options.formulation = formulation;
    options.substeps = 4;  // of which the step of the scene is one
    const Tensor slowed = change(at_samples(sliding, none(), block(), options), sliding);
    EXPECT_LT(largest(slowed - numbers({kMu * fall, 0, 0})), 1e-8);
  }
  const RigidState resting = at(1e-5, torch::zeros({3}, torch::kDouble));  // not quite on the ground
  EXPECT_LT(largest(change(at_mid_steps(resting, none(), block()), resting)), 1e-3);
  const RigidState deep = at(-1e-3, torch::zeros({3}, torch::kDouble));
  EXPECT_LT(largest(change(at_mid_steps(deep, none(), block()), deep)), 1e-8);
}

TEST(SampleVelocitiesTest, AreThoseBeforeAnImpact) {
  for (const double height : {0.0, 1e-4, 0.005, 0.015, 0.05}) {
    const RigidState falling = at(height, numbers({0, 0, -2}));  // 2 cm in a step
    const Tensor found = change(at_mid_steps(falling, none(), block(0.5)), falling);
    EXPECT_LT(largest(found - numbers({0, 0, kGravity * kStep / 2})), 1e-6) << height;
  }
}

// A turning body of three different moments of inertia, which Euler's equations accelerate.
TEST(SampleVelocitiesTest, KnowTheGyroscopicTorque) {
  const RigidScene scene = scene_of({RigidBody::box(1, {0.1, 0.2, 0.3})}, kStep, kMu);
  RigidState state = at(1, torch::zeros({3}, torch::kDouble));
  state.angular_velocity = numbers({1, 2, 3}).view({1, 3});
  const Tensor I = scene.bodies[0].inertia.diagonal(0, -2, -1), omega = state.angular_velocity.squeeze(0);
  const Tensor expected = -torch::linalg_cross(omega, I * omega) / I * kStep / 2;
  const Tensor found = (at_samples(state, none(), scene).angular_velocity - state.angular_velocity).squeeze(0);
  EXPECT_LT(largest(found - expected), 0.05 * largest(expected));  // to second order in dt
}

// A rollout that begins with the velocity of the sample is off by a dt t / 2; one that begins at mid-step is exact.
TEST(SampleVelocitiesTest, MakeARolloutExact) {
  const std::int64_t steps = 40;
  const Tensor t = kStep * torch::arange(1, steps + 1, torch::kDouble);
  const RigidState sliding = at(0, numbers({2, 0, 0}));
  const Tensor u = no_forces(steps);
  const Tensor x = 2 * t - kMu * kGravity * t.square() / 2, v = 2 - kMu * kGravity * t;
  const auto position = [&](const RigidState& start) {
    return simulate(start, u, block()).next.position.select(-1, 0).squeeze(-1);
  };
  EXPECT_GT(largest(position(sliding) - x), 0.9 * kMu * kGravity * kStep * 0.4 / 2);
  const RigidState start = at_mid_steps(sliding, none(), block());
  EXPECT_LT(largest(position(start) - x), 1e-7);
  const RigidState found = at_samples(simulate(start, u, block()).next, u, block());
  EXPECT_LT(largest(found.velocity.select(-1, 0).squeeze(-1) - v), 1e-7);
}

TEST(SampleVelocitiesTest, AreDifferentiable) {
  RigidScene scene = block();
  scene.mu = number(kMu).view({1}).requires_grad_();
  const RigidState sliding = at(0, numbers({2, 0, 0}));
  at_mid_steps(sliding, none(), scene).velocity[0][0].backward();
  EXPECT_NEAR(scene.mu.grad().item<double>(), kGravity * kStep / 2, 1e-8);
}

}  // namespace lcp::physics::sample_velocities_test
