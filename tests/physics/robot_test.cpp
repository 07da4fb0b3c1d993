// Robots in C++; tests/wheel/test_robots.py has what they do.
#include "lcp/physics/robot.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include <cmath>

namespace lcp::physics {
namespace {

constexpr double kDt = 0.001;
// What gravity does to the angle, 1/s^2, over its sine: m g l / I of a rod of 1 kg and 1 m.
constexpr double kPull = 9.81 * 0.5 * 3;

at::Tensor numbers(at::ArrayRef<double> x) { return torch::tensor(x, at::kDouble); }

// A rod that hangs by a hinge about y, with a motor.
Robot pendulum() {
  Robot robot;
  robot.parents = {-1};
  robot.joints = {{0, JointKind::kHinge}};
  robot.actuators = {{0}};
  robot.balls = {0};
  robot.mass = numbers({1});
  robot.inertia = (torch::eye(3, at::kDouble) / 12).unsqueeze(0);
  robot.center_of_mass = numbers({0, 0, -0.5}).unsqueeze(0);
  robot.position = robot.anchor = torch::zeros({1, 3}, at::kDouble);
  robot.orientation = numbers({1, 0, 0, 0}).unsqueeze(0);
  robot.axis = numbers({0, 1, 0}).unsqueeze(0);
  robot.range = robot.spring = torch::zeros({1, 2}, at::kDouble);
  robot.damping = robot.armature = numbers({0});
  robot.gear = numbers({1});
  robot.actuator_force = numbers({1, 0, 0, 0}).unsqueeze(0);
  robot.centers = robot.normals = torch::zeros({0, 3}, at::kDouble);
  robot.radii = robot.offsets = robot.mu = torch::zeros({0}, at::kDouble);
  robot.gravity = numbers({0, 0, -9.81});
  robot.dt = kDt;
  return robot;
}

TEST(RobotTest, APendulumStepsByItsEquation) {
  const Robot robot = pendulum();
  const at::Tensor control = torch::full({3, 1}, 0.2, at::kDouble);
  const RobotSolution rollout = simulate({numbers({0.4}), numbers({0.1})}, {control, {}}, 3, robot);
  double q = 0.4, v = 0.1;
  for (int row = 0; row < 3; ++row) {
    v += kDt * (3 * 0.2 - kPull * std::sin(q));
    q += kDt * v;
    EXPECT_EQ(rollout.status[row].item<int>(), 0);
    EXPECT_NEAR(rollout.next.qpos[row].item<double>(), q, 1e-14);
    EXPECT_NEAR(rollout.next.qvel[row].item<double>(), v, 1e-13);
  }
  const RobotSolution one = step({numbers({0.4}), numbers({0.1})}, {control[0], {}}, robot);
  EXPECT_TRUE(at::equal(one.next.qpos, rollout.next.qpos[0]));
  EXPECT_TRUE(at::equal(one.next.qvel, rollout.next.qvel[0]));
}

TEST(RobotTest, LinearizeAndTheGradientAreTheDerivative) {
  Robot robot = pendulum();
  const double q = 0.4, slope = -kDt * kPull * std::cos(q);
  const RobotLinearization found = linearize({numbers({q}), numbers({0.1})}, numbers({0.2}), robot);
  const at::Tensor A = numbers({1 + kDt * slope, kDt, slope, 1}).view({2, 2}),
                   B = numbers({3 * kDt * kDt, 3 * kDt}).view({2, 1});
  EXPECT_TRUE(at::allclose(found.A, A, 1e-12, 1e-14)) << found.A;
  EXPECT_TRUE(at::allclose(found.B, B, 1e-12, 1e-16)) << found.B;

  const at::Tensor qpos = numbers({q}).requires_grad_();
  robot.damping = numbers({0.3}).requires_grad_();
  simulate({qpos, numbers({0.1})}, {}, 1, robot).next.qvel.sum().backward();
  // (1/3 + dt d) (v' - v) = -dt (d v + 4.905 sin q).
  const double mass = 1. / 3 + kDt * 0.3, force = -kDt * (0.3 * 0.1 + 4.905 * std::sin(q));
  EXPECT_NEAR(qpos.grad().item<double>(), -kDt * 4.905 * std::cos(q) / mass, 1e-14);
  EXPECT_NEAR(robot.damping.grad().item<double>(), -kDt * 0.1 / mass - kDt * force / (mass * mass), 1e-14);
}

TEST(RobotTest, DryFrictionHoldsOrSlows) {
  Robot robot = pendulum();
  const double pull = 4.905 * std::sin(0.4);
  const RobotState at = {numbers({0.4}), numbers({0})};
  const auto end = [&](double loss) {
    robot.friction_loss = numbers({loss});
    return simulate(at, {}, 1, robot);
  };
  const RobotSolution held = end(pull + 1);
  EXPECT_NEAR(held.next.qvel[0].item<double>(), 0, 1e-18);
  EXPECT_NEAR(held.joint_friction[0].item<double>(), kDt * pull, 1e-15);
  EXPECT_NEAR(end(pull - 1).next.qvel[0].item<double>(), -3 * kDt, 1e-15);
  EXPECT_EQ(end(-1).status[0].item<int>(), 4);
  robot.friction_loss = numbers({pull - 1}).requires_grad_();
  simulate(at, {}, 1, robot).next.qvel.sum().backward();
  EXPECT_NEAR(robot.friction_loss.grad().item<double>(), 3 * kDt, 1e-15);
  robot.friction_loss = at::Tensor();
  EXPECT_EQ(simulate(at, {}, 1, robot).joint_friction.sum().item<double>(), 0);
  robot.friction_loss = numbers({1, 1});
  EXPECT_THROW(simulate(at, {}, 1, robot), c10::Error);
}

TEST(RobotTest, PlacesAndTheDefaultState) {
  const Robot robot = pendulum();
  const RobotState state = default_state(robot);
  EXPECT_TRUE(at::equal(state.qpos, numbers({0}))) << state.qpos;
  const at::Tensor rotation = places(numbers({0.3}), robot).rotation;
  EXPECT_NEAR(rotation[0][0][2].item<double>(), std::sin(0.3), 1e-15);
}

TEST(RobotTest, WhatDoesNotFitIsAnError) {
  Robot robot = pendulum();
  robot.mass = at::Tensor();
  EXPECT_THROW(simulate(default_state(pendulum()), {}, 1, robot), c10::Error);
  robot = pendulum();
  robot.balls.clear();
  EXPECT_THROW(simulate(default_state(pendulum()), {}, 1, robot), c10::Error);
  EXPECT_THROW(simulate({numbers({0, 0}), numbers({0})}, {}, 1, pendulum()), c10::Error);
}

}  // namespace
}  // namespace lcp::physics
