// Rollouts of rigid bodies by lcp::_rollout against the loop over operators of tensors that they stand for.
#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <torch/autograd.h>
#include <torch/csrc/autograd/forward_grad.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "lcp/physics/rigid_scene.h"
#include "lcp/status.h"
#include "physics/rigid_rollout.h"
#include "support/rigid_scenes.h"
#include "support/tensors.h"

namespace lcp::physics::rigid_walk_test {

using testing::everywhere;
using testing::kGravity;
using testing::largest;
using testing::no_forces;
using testing::number;
using testing::numbers;
using testing::pose;
using testing::scene_of;
using testing::Stack;
using torch::Tensor;

using Inputs = std::vector<Tensor>;
using Form = RigidSteps (*)(const RigidState&, const Tensor&, const RigidScene&, const RigidOptions&);

// The rollout of the operator.
RigidSteps walk(const RigidState& state, const Tensor& u, const RigidScene& scene, const RigidOptions& options) {
  return roll_out(state, u, PreparedScene(scene, options));
}

/// A rollout. Its `inputs` are the state (4 tensors), u, gravity, mu, restitution, then mass, inertia, centers,
/// radii and drag of each body, then normal and offset of each plane, then stiffness and dissipation.
struct Case {
  std::string name;
  RigidState start;
  Tensor u;
  RigidScene scene;
  RigidOptions options = {};
  std::int64_t contacts = 1;  ///< steps with an impulse that there must be
  bool is_unique = true;      ///< whether velocities determine the impulses

  Inputs inputs() const {
    Inputs all = {start.position, start.orientation, start.velocity,   start.angular_velocity, u,
                  scene.gravity,  scene.mu,          scene.restitution};
    for (const RigidBody& body : scene.bodies) {
      all.insert(all.end(),
                 {body.mass, body.inertia, body.centers, body.radii, body.drag.defined() ? body.drag : number(0)});
    }
    for (const Plane& plane : scene.planes) all.insert(all.end(), {plane.normal, plane.offset});
    all.insert(all.end(), {scene.stiffness, scene.dissipation});
    return all;
  }

  RigidSteps run(Form form, const Inputs& x) const {
    RigidScene with = scene;
    with.gravity = x[5];
    with.mu = x[6];
    with.restitution = x[7];
    std::size_t next = 8;
    for (RigidBody& body : with.bodies) {
      body = {x[next], x[next + 1], x[next + 2], x[next + 3], x[next + 4]};
      next += 5;
    }
    for (Plane& plane : with.planes) {
      plane.normal = x[next];
      plane.offset = x[next + 1];
      next += 2;
    }
    with.stiffness = x[next];
    with.dissipation = x[next + 1];
    return form({x[0], x[1], x[2], x[3]}, x[4], with, options);
  }
};

RigidState thrown(const RigidState& state, const std::vector<double>& velocity, const std::vector<double>& omega) {
  RigidState moving = state;
  moving.velocity = numbers(velocity).view_as(state.velocity);
  moving.angular_velocity = numbers(omega).view_as(state.angular_velocity);
  return moving;
}

Case tumbling_box() {
  torch::manual_seed(1);  // the same forces whatever tests came before
  RigidBody box = RigidBody::box(1.2, {0.1, 0.12, 0.14});
  box.drag = number(0.1);
  RigidScene scene = scene_of({box}, 0.005, 0.4, 0.4, 0.1);
  scene.stiffness = numbers({2e4});  // so soft that the time step does not limit it, as it does elsewhere
  return {"tumbling box",
          thrown(pose({0, 0, 0.12}, {0.8, 0.3, -0.4, 0.2}), {0.5, -0.3, -0.6}, {2, -1, 3}),
          0.3 * torch::randn({60, 1, 6}, torch::kDouble) * numbers({1, 1, 1, 0.01, 0.01, 0.01}),
          scene,
          {},
          5};
}

Case rolling_ball() {
  return {"rolling ball",
          thrown(pose({0, 0, 0.1}), {2, 0.5, 0}, {0.3, 0.1, 0.2}),
          no_forces(80),
          scene_of({RigidBody::ball(1, 0.1)}, 0.005, 0.3),
          {},
          50};
}

// Two balls that meet in the air, then a third; with one other, they fall on the plane.
Case balls() {
  const RigidState at = RigidState::at_rest(numbers({0, 0, 0.3, 0.3, 0.02, 0.31, 0.7, -0.05, 0.33}).view({3, 3}));
  return {"balls that meet",
          thrown(at, {1.5, 0, 0, -1, 0.1, 0, -0.5, 0.2, 0}, {1, 2, 3, -1, 0, 2, 0.5, 0.1, 0.2}),
          no_forces(70, 3),
          scene_of({RigidBody::ball(1, 0.1), RigidBody::ball(0.5, 0.12), RigidBody::ball(0.8, 0.08)}, 0.005, 0.3, 0.6),
          {},
          4};
}

// A body on three feet, whose loads its motion determines, as it does not on four.
RigidBody stool() {
  return {number(1), torch::eye(3, torch::kDouble) / 600,
          numbers({0.05, 0, -0.05, -0.03, 0.04, -0.05, -0.03, -0.04, -0.05}).view({3, 3}),
          torch::zeros({3}, torch::kDouble)};
}

// Stools at rest that stand on the tops of others, pushed so that none slides.
Case stack() {
  Stack made(3);
  for (RigidBody& body : made.scene.bodies) body = stool();
  Tensor u = no_forces(15, 3);
  u.select(-2, 1).select(-1, 0).fill_(0.7);
  return {"stack", made.state, u, made.scene, {}, 15, false};
}

// Boxes that fall, one of them on a plane that the other one carries.
Case falling_boxes() {
  const RigidBody box = RigidBody::box(1, {0.1, 0.12, 0.14});
  RigidScene scene = scene_of({box, box}, 0.005, 0.5, 0.2);
  scene.planes.push_back({numbers({0.1, 0.05, 0.99}), number(0.07), 0, {1}});
  RigidState state = RigidState::at_rest(numbers({0, 0, 0.3, 0.01, 0, 0.52}).view({2, 3}));
  state.orientation = numbers({0.9, 0.2, -0.1, 0.3, 0.95, 0.1, 0.2, 0.05}).view({2, 4});
  return {"boxes that fall",
          thrown(state, {0.3, 0.1, 0, 0, 0, -0.5}, {0.5, 0.2, 1, 0, 0.3, 0.1}),
          no_forces(40, 2),
          scene,
          {},
          4};
}

Case flight() {
  RigidScene scene = scene_of({RigidBody::box(1, {0.1, 0.2, 0.3})}, 0.01);
  scene.planes.clear();
  return {"free flight without pairs",
          thrown(pose({0, 0, 1}, {1, 2, 0, 0.5}), {1, 0, 0.2}, {9, -14, 20}),
          torch::randn({40, 1, 6}, torch::kDouble) * 0.01,
          scene,
          {},
          0};
}

// A ball that rises slowly, until a force throws it at the plane within one step.
Case pushed_ball() {
  Tensor u = no_forces(5);
  u[1][0][2] = -800;
  return {"pushed ball",
          thrown(pose({0, 0, 0.101}), {0.3, 0.1, 0.2}, {1, 2, 3}),
          u,
          scene_of({RigidBody::ball(1, 0.1)}, 0.005, 0.4, 0.5),
          {},
          1};
}

// Balls in a row that meet several times within a step, while the last ones still fly apart.
Case row() {
  RigidScene scene = scene_of({}, 0.005, 0.3, 0.7);
  std::vector<double> positions;
  for (int k = 0; k < 5; ++k) {
    scene.bodies.push_back(RigidBody::ball(1 + 0.3 * k, 0.05));
    positions.insert(positions.end(), {0.1 * k + 3e-4 * k * k - (k == 0 ? 0.003 : 0), 0.004 * (k % 2), 1});
  }
  return {"row of balls",
          thrown(RigidState::at_rest(numbers(positions).view({5, 3})), {3, 0.1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, -1, 0, 0},
                 {1, 2, 3, 0, 0, 0, 0, 1, 0, 0, 0, 0, 3, -1, 0}),
          no_forces(6, 5),
          scene,
          {},
          2};
}

// A ball that falls on a box which lies on the ground.
Case hit_box() {
  RigidScene scene = scene_of({stool(), RigidBody::ball(0.6, 0.05)}, 0.005, 0.4, 0.6);
  scene.planes.push_back({numbers({0, 0, 1}), number(0.05), 0, {1}});
  scene.planes[0].touches = {0};
  scene.restitution = numbers({0, 0, 0, 0.6, 0.6, 0.6, 0.6});
  return {"ball that hits a stool",
          thrown(RigidState::at_rest(numbers({0, 0, 0.05, 0.01, 0.005, 0.165}).view({2, 3})), {0, 0, 0, 0.3, 0.2, -2},
                 {0, 0, 0, 1, 0, 2}),
          no_forces(2, 2),
          scene,
          {},
          2};
}

Case no_balls() {
  RigidScene scene = scene_of({{number(1), torch::eye(3, torch::kDouble), torch::zeros({0, 3}, torch::kDouble),
                                torch::zeros({0}, torch::kDouble)}},
                              0.01);
  return {"a body that touches nothing", thrown(pose({0, 0, 0}), {0, 1, 0}, {1, 2, 3}), no_forces(5), scene, {}, 0};
}

constexpr RigidFormulation kFormulations[] = {RigidFormulation::kExactCone, RigidFormulation::kPolyhedral,
                                              RigidFormulation::kCompliant};

// The case with another formulation, and a tolerance with which the steps that follow another do not differ by more.
Case with(RigidFormulation formulation, Case c) {
  const char* const names[] = {", exact cone", ", polyhedral", ", compliant"};
  c.name += names[static_cast<int>(formulation)];
  c.options.formulation = formulation;
  c.options.tolerance = 1e-12;
  // Directions of friction that lie on no axis: else a motion along an axis would be tied.
  c.options.directions = {5, 0.3};
  return c;
}

std::vector<Case> cases(RigidFormulation formulation) {
  torch::manual_seed(3);
  std::vector<Case> all;
  for (const Case& c : {tumbling_box(), rolling_ball(), balls(), stack(), falling_boxes(), pushed_ball(), row(),
                        hit_box(), flight(), no_balls()}) {
    all.push_back(with(formulation, c));
  }
  return all;
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const RigidFormulation formulation : kFormulations) {
    for (const Case& c : cases(formulation)) all.push_back(c);
  }
  return all;
}

Inputs results_of(const RigidSteps& steps, bool with_impulses = true) {
  Inputs all = {steps.next.position, steps.next.orientation, steps.next.velocity, steps.next.angular_velocity};
  if (with_impulses) all.push_back(steps.gamma);
  return all;
}

// Fixed weights of the numbers of x, whose bits do not depend on the number of threads.
Tensor weights_of(const Tensor& x) { return torch::arange(x.numel(), x.options()).fmod(7).view(x.sizes()) / 4 - 0.6; }

// The gradients of a weighted sum of all results, in which impulses count as much as velocities.
Inputs gradients_of(const Case& c, Form form, const Inputs& inputs) {
  Inputs leaves;
  for (const Tensor& x : inputs) leaves.push_back(x.detach().clone().requires_grad_());
  Tensor sum = torch::zeros({}, torch::kDouble);
  for (const Tensor& result : results_of(c.run(form, leaves), c.is_unique)) {
    sum = sum + (weights_of(result.detach().to(torch::kDouble)) * result).sum();
  }
  Inputs gradients = torch::autograd::grad({sum}, leaves, {}, {}, false, /*allow_unused=*/true);
  for (std::size_t k = 0; k < gradients.size(); ++k) {
    if (!gradients[k].defined()) gradients[k] = torch::zeros_like(leaves[k]);
  }
  return gradients;
}

void expect_equal_steps(const RigidSteps& actual, const RigidSteps& expected, double tolerance, const std::string& name,
                        bool is_unique = true) {
  EXPECT_TRUE(actual.status.equal(expected.status)) << name;
  const Inputs a = results_of(actual, is_unique), b = results_of(expected, is_unique);
  for (std::size_t k = 0; k < a.size(); ++k) {
    ASSERT_EQ(a[k].sizes(), b[k].sizes()) << name;
    ASSERT_EQ(a[k].scalar_type(), b[k].scalar_type()) << name;
    EXPECT_TRUE(a[k].isnan().equal(b[k].isnan())) << name << ", result " << k;
    if (a[k].numel() == 0) continue;
    EXPECT_LE(largest((a[k] - b[k]).nan_to_num(0)), tolerance * (1 + largest(b[k].nan_to_num(0))))
        << name << ", result " << k;
  }
}

void expect_equal_gradients(const Case& c, const Inputs& inputs, double tolerance) {
  const Inputs actual = gradients_of(c, walk, inputs), expected = gradients_of(c, step_by_step, inputs);
  for (std::size_t k = 0; k < actual.size(); ++k) {
    ASSERT_EQ(actual[k].sizes(), expected[k].sizes()) << c.name << ", input " << k;
    if (actual[k].numel() == 0) continue;
    EXPECT_TRUE(everywhere(expected[k].isfinite())) << c.name << ", input " << k;
    EXPECT_LE(largest(actual[k] - expected[k]), tolerance * (1 + largest(expected[k]))) << c.name << ", input " << k;
  }
}

TEST(RigidWalkTest, HasTheValuesOfTheLoop) {
  for (const Case& c : cases()) {
    const RigidSteps actual = c.run(walk, c.inputs()), expected = c.run(step_by_step, c.inputs());
    expect_equal_steps(actual, expected, 1e-9, c.name, c.is_unique);
    EXPECT_TRUE(everywhere(actual.status == 0)) << c.name;
    EXPECT_GE((actual.gamma != 0).any(-1).sum().item<std::int64_t>(), c.contacts) << c.name;
  }
}

TEST(RigidWalkTest, HasTheGradientsOfTheLoopInEverything) {
  for (const Case& c : cases()) expect_equal_gradients(c, c.inputs(), 1e-7);
}

// The cases once more, four times in a batch: each input with a batch of its own.
Inputs batched(const Case& c) {
  Inputs inputs = c.inputs();
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    const Tensor& x = inputs[k];
    if (k == 4) {
      inputs[k] = x.unsqueeze(1).expand({x.size(0), 2, x.size(1), 6}) * numbers({1, 0.9}).view({1, 2, 1, 1});
    } else if (k % 3 != 2) {
      const Tensor factors = numbers({1, 1 + 1e-3 * static_cast<double>(k)});
      std::vector<std::int64_t> shape(x.dim() + 1, 1);
      shape[0] = 2;
      inputs[k] = x.unsqueeze(0) * factors.view(shape);
      if (k % 2 == 1) inputs[k] = inputs[k].unsqueeze(1);
    }
  }
  return inputs;
}

TEST(RigidWalkTest, BroadcastsAsTheLoopDoes) {
  for (Case c : {with(RigidFormulation::kExactCone, tumbling_box()), with(RigidFormulation::kExactCone, flight()),
                 with(RigidFormulation::kPolyhedral, balls()), with(RigidFormulation::kCompliant, tumbling_box())}) {
    // In its last steps one of the boxes slides and spins on four corners, for which the law has many solutions.
    c.u = c.u.narrow(0, 0, std::min<std::int64_t>(c.u.size(0), 50));
    const Inputs inputs = batched(c);
    expect_equal_steps(c.run(walk, inputs), c.run(step_by_step, inputs), 1e-9, c.name);
    expect_equal_gradients(c, inputs, 1e-7);
  }
}

TEST(RigidWalkTest, ObeysTheOptionsOfTheLoop) {
  for (const RigidFormulation formulation : kFormulations) {
    Case c = with(formulation, tumbling_box());
    c.options.bounce_threshold = 0.4;
    c.options.stabilization = 0.3;
    c.options.directions = {7, 0.2};
    c.options.regularization = {3e-3, 2};
    c.start.position[0][2] -= 0.06;  // it begins in the plane
    expect_equal_steps(c.run(walk, c.inputs()), c.run(step_by_step, c.inputs()), 1e-9, c.name);
    expect_equal_gradients(c, c.inputs(), 1e-7);
  }
}

TEST(RigidWalkTest, HasTheDerivativeThatTiesChoose) {
  // A box that slides along the first of four directions, until it sticks: the pairs across are tied.
  Case c = with(RigidFormulation::kPolyhedral, {"sliding box", thrown(pose({0, 0, 0.05}), {0.25, 0, 0}, {0, 0, 0}),
                                                no_forces(12), scene_of({stool()}, 0.01, 0.3)});
  c.options.directions = {};
  Tensor slopes;
  for (const Ties ties : {Ties::kInactive, Ties::kActive, Ties::kMidpoint}) {
    c.options.ties = ties;
    c.name = ties_name(ties);
    expect_equal_gradients(c, c.inputs(), 1e-7);
    const Tensor slope = gradients_of(c, walk, c.inputs())[4].flatten();
    if (ties == Ties::kInactive) slopes = slope;
    if (ties == Ties::kActive) {
      EXPECT_GT(largest(slope - slopes), 1e-3);
    }
  }
  c.options.ties = "both";
  EXPECT_THROW(simulate(c.start, c.u, c.scene, c.options), c10::Error);
}

TEST(RigidWalkTest, AlmostRigidContactHasTheGradientsOfTheLoop) {
  for (const Case& made : {rolling_ball(), balls()}) {
    Case c = with(RigidFormulation::kCompliant, made);
    c.scene.stiffness = numbers({1e13});
    c.u = c.u.slice(0, 0, 40);
    c.options.regularization = {1e-6, 5e-3};  // R is about 1e-6 of the Delassus diagonal
    expect_equal_steps(c.run(walk, c.inputs()), c.run(step_by_step, c.inputs()), 1e-9, c.name);
    expect_equal_gradients(c, c.inputs(), 1e-7);
  }
}

TEST(RigidWalkTest, IsWhatSimulateReturnsAlsoWithSubsteps) {
  for (const RigidFormulation formulation : kFormulations) {
    Case c = with(formulation, tumbling_box());
    const RigidSteps fine = walk(c.start, c.u.repeat_interleave(3, 0), c.scene, c.options);
    c.options.substeps = 3;
    const RigidSolution all = simulate(c.start, c.u, c.scene, c.options);
    EXPECT_TRUE(all.next.position.equal(fine.next.position.slice(0, 2, {}, 3))) << c.name;
    EXPECT_TRUE(all.gamma.equal(fine.gamma.unflatten(0, {-1, 3}).sum(1))) << c.name;
    EXPECT_TRUE(all.iterations.equal(fine.iterations.unflatten(0, {-1, 3}).sum(1))) << c.name;
  }
}

class RigidWalkByFormulationTest : public ::testing::TestWithParam<RigidFormulation> {};

TEST_P(RigidWalkByFormulationTest, ComputesFloat32InDoublePrecision) {
  Case c = with(GetParam(), tumbling_box());
  c.options.tolerance = {};
  Inputs single;
  for (const Tensor& x : c.inputs()) single.push_back(x.to(torch::kFloat));
  const RigidSteps actual = c.run(walk, single);
  EXPECT_EQ(actual.next.position.scalar_type(), torch::kFloat);
  Inputs rounded;
  for (const Tensor& x : single) rounded.push_back(x.to(torch::kDouble));
  const RigidSteps expected = c.run(walk, rounded);
  EXPECT_TRUE(actual.next.position.equal(expected.next.position.to(torch::kFloat)));
  EXPECT_TRUE(actual.gamma.equal(expected.gamma.to(torch::kFloat)));
  EXPECT_TRUE(actual.iterations.equal(expected.iterations));
  const Inputs gradients = gradients_of(c, walk, single), exact = gradients_of(c, walk, rounded);
  for (std::size_t k = 0; k < gradients.size(); ++k) {
    EXPECT_EQ(gradients[k].scalar_type(), torch::kFloat);
    EXPECT_LE(largest(gradients[k] - exact[k]), 1e-3 * (1 + largest(exact[k]))) << k;
  }
}

TEST_P(RigidWalkByFormulationTest, AFailureStaysInItsTrajectory) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  Case c = with(GetParam(), tumbling_box());
  c.start.position = c.start.position.expand({5, 1, 3}).clone();
  c.start.orientation = c.start.orientation.expand({5, 1, 4}).clone();
  c.u = c.u.unsqueeze(1).expand({c.u.size(0), 5, 1, 6}).clone();
  c.scene.mu = numbers({0.4, 0.4, 0.4, 0.4, 0.4}).view({5, 1});
  c.start.position[1][0][0] = nan;
  c.u[7][2][0][4] = nan;
  // The LCP also has solutions for a negative friction coefficient.
  c.scene.mu[3][0] = GetParam() == RigidFormulation::kPolyhedral ? std::numeric_limits<double>::infinity() : -1;
  const RigidSteps actual = c.run(walk, c.inputs());
  expect_equal_steps(actual, c.run(step_by_step, c.inputs()), 1e-9, "failures");
  const auto unsolved = [&](std::int64_t k) { return (actual.status.select(1, k) != 0).sum().item<std::int64_t>(); };
  const std::int64_t steps = c.u.size(0);
  EXPECT_EQ(unsolved(0), 0);
  EXPECT_EQ(unsolved(1), steps);
  EXPECT_EQ(unsolved(2), steps - 7);
  EXPECT_GT(unsolved(3), 0);
  EXPECT_LT(unsolved(3), steps);

  // A loss of the steps that were solved has a gradient; one of the others has none.
  const auto gradients = [&](bool masked) {
    Inputs leaves;
    for (const Tensor& x : c.inputs()) leaves.push_back(x.detach().clone().requires_grad_());
    const RigidSteps all = c.run(walk, leaves);
    const Tensor height = all.next.position.select(-1, 2).squeeze(-1);
    return torch::autograd::grad({(masked ? torch::where(all.status == 0, height, 0) : height).sum()}, leaves, {}, {},
                                 false, /*allow_unused=*/true);
  };
  for (const Tensor& gradient : gradients(true)) EXPECT_TRUE(!gradient.defined() || everywhere(gradient.isfinite()));
  const Inputs undefined = gradients(false);
  for (const std::int64_t k : {0, 4}) EXPECT_TRUE(everywhere(undefined[0][k].isfinite())) << k;
  for (const std::int64_t k : {1, 2, 3}) EXPECT_TRUE(everywhere(undefined[0][k].isnan())) << k;
}

TEST_P(RigidWalkByFormulationTest, WhatIsNotFiniteAndAQuaternionThatIsZeroAreBadInput) {
  const Case c = with(GetParam(), tumbling_box());
  const Tensor nan = number(std::numeric_limits<double>::quiet_NaN());
  const auto statuses = [&](std::size_t k, const Tensor& value) {
    Inputs x = c.inputs();
    x[k] = torch::stack({x[k], value.expand_as(x[k])});  // beside an element that is as it should be
    const RigidSteps actual = c.run(walk, x), expected = c.run(step_by_step, x);
    expect_equal_steps(actual, expected, 1e-9, "input " + std::to_string(k));
    EXPECT_TRUE(everywhere(actual.status.select(1, 0) == 0)) << k;
    return actual.status.select(1, 1);
  };
  const auto bad = static_cast<std::int64_t>(Status::kBadInput);
  EXPECT_TRUE(everywhere(statuses(1, number(0)) == bad));
  // The centres and radii of the body, the normal and the offset of the plane.
  for (const std::size_t k : {10, 11, 13, 14}) EXPECT_TRUE(everywhere(statuses(k, nan) == bad)) << k;
  // Masses and inertias that are not positive, and stiffnesses that are not, of contacts that are made.
  for (const std::size_t k : {8, 9, 15}) {
    if (k == 15 && GetParam() != RigidFormulation::kCompliant) continue;
    const Tensor status = statuses(k, k == 9 ? -torch::eye(3, torch::kDouble) : k == 8 ? number(-1) : nan);
    EXPECT_FALSE(everywhere(status == 0)) << k;
  }
}

TEST_P(RigidWalkByFormulationTest, ATrajectoryIsTheSameAloneAndInABatchOnAnyNumberOfThreads) {
  torch::manual_seed(5);
  constexpr std::int64_t kCount = 40;
  Case c = with(GetParam(), tumbling_box());
  c.u = c.u.slice(0, 0, 12);  // before any slides on a face, which would not determine how it turns
  c.start.position = c.start.position + 0.02 * torch::rand({kCount, 1, 3}, torch::kDouble);
  c.start.orientation = torch::randn({kCount, 1, 4}, torch::kDouble);
  c.start.velocity = torch::randn({kCount, 1, 3}, torch::kDouble);
  c.start.angular_velocity = 3 * torch::randn({kCount, 1, 3}, torch::kDouble);
  const auto run = [](const Case& of) {
    Inputs all = results_of(of.run(walk, of.inputs()));
    const Inputs gradients = gradients_of(of, walk, of.inputs());
    all.insert(all.end(), gradients.begin(), gradients.end());
    return all;
  };
  const int threads = at::get_num_threads();
  at::set_num_threads(1);
  const Inputs one = run(c);
  at::set_num_threads(2);
  const Inputs two = run(c);
  at::set_num_threads(threads);
  for (std::size_t k = 0; k < one.size(); ++k) {
    EXPECT_TRUE(everywhere(one[k].isfinite())) << k;
    EXPECT_TRUE(one[k].equal(two[k])) << k;
  }

  // Alone it has the same path, and the same gradient of the same loss.
  const auto end = [](const Case& of) {
    Inputs leaves;
    for (const Tensor& x : of.inputs()) leaves.push_back(x.detach().clone().requires_grad_());
    const RigidSteps all = of.run(walk, leaves);
    Inputs found = {all.next.position, all.gamma};
    const Inputs gradients = torch::autograd::grad({all.next.position.sum()}, {leaves[0], leaves[1], leaves[2]});
    found.insert(found.end(), gradients.begin(), gradients.end());
    return found;
  };
  const Inputs all = end(c);
  for (const std::int64_t k : {0, 17, 39}) {
    Case alone = c;
    alone.start = {c.start.position[k], c.start.orientation[k], c.start.velocity[k], c.start.angular_velocity[k]};
    const Inputs found = end(alone);
    for (std::size_t i = 0; i < 2; ++i) EXPECT_TRUE(all[i].select(1, k).equal(found[i])) << k;
    for (std::size_t i = 2; i < 5; ++i) EXPECT_TRUE(all[i][k].equal(found[i])) << k;
  }
}

TEST_P(RigidWalkByFormulationTest, SecondDerivativesAreThoseOfTheLoop) {
  Case c = with(GetParam(), tumbling_box());
  c.u = c.u.slice(0, 0, 21);
  const auto second = [&](Form form) {
    Inputs leaves;
    for (const Tensor& x : c.inputs()) leaves.push_back(x.detach().clone().requires_grad_());
    const Tensor end = c.run(form, leaves).next.position[20].sum();
    const Inputs first = torch::autograd::grad({end}, {leaves[2], leaves[6], leaves[8]}, {}, {}, true);
    Tensor sum = torch::zeros({}, torch::kDouble);
    for (const Tensor& x : first) sum = sum + x.square().sum();
    return torch::autograd::grad({sum}, {leaves[2], leaves[6], leaves[8]});
  };
  const Inputs actual = second(walk), expected = second(step_by_step);
  for (std::size_t k = 0; k < actual.size(); ++k) {
    EXPECT_GT(largest(expected[k]), 0);
    EXPECT_LE(largest(actual[k] - expected[k]), 1e-6 * (1 + largest(expected[k]))) << k;
  }
}

std::string name_of(const ::testing::TestParamInfo<RigidFormulation>& made) {
  const char* const names[] = {"ExactCone", "Polyhedral", "Compliant"};
  return names[static_cast<int>(made.param)];
}
INSTANTIATE_TEST_SUITE_P(Formulations, RigidWalkByFormulationTest, ::testing::ValuesIn(kFormulations), name_of);

TEST(RigidWalkTest, ForwardModeIsTheTransposeOfReverseMode) {
  const auto level = torch::autograd::ForwardADLevel::get_next_idx();
  for (const Case& c : cases()) {
    const Inputs inputs = c.inputs(), gradients = gradients_of(c, walk, inputs);
    Inputs moved;
    double expected = 0, size = 0;
    for (std::size_t k = 0; k < inputs.size(); ++k) {
      if (inputs[k].numel() == 0) {
        moved.push_back(inputs[k]);
        continue;
      }
      const Tensor direction = weights_of(inputs[k].to(torch::kDouble)) * (1e-3 + largest(inputs[k]));
      expected += (gradients[k] * direction).sum().item<double>();
      size += (gradients[k] * direction).abs().sum().item<double>();
      moved.push_back(inputs[k].clone());
      moved.back()._set_fw_grad(direction, level, false);
    }
    double slope = 0;
    for (const Tensor& result : results_of(c.run(walk, moved), c.is_unique)) {
      const Tensor tangent = result._fw_grad(level);
      if (tangent.defined()) slope += (weights_of(result._fw_primal(level)) * tangent).sum().item<double>();
    }
    EXPECT_NEAR(slope, expected, 1e-8 * (1 + size)) << c.name;
  }
  torch::autograd::ForwardADLevel::release_idx(level);
}

TEST(RigidWalkTest, SmoothedContactHasTheDerivativesOfTheLoop) {
  for (const RigidFormulation formulation : {RigidFormulation::kPolyhedral, RigidFormulation::kExactCone}) {
    Case c = with(formulation, tumbling_box());
    c.u = c.u.slice(0, 0, 15);
    const RigidSteps exact = c.run(walk, c.inputs());
    c.options.kappa = 1e-3;
    expect_equal_steps(c.run(walk, c.inputs()), exact, 0, c.name);
    expect_equal_gradients(c, c.inputs(), 1e-6);
  }
}

}  // namespace lcp::physics::rigid_walk_test
