// The motion of rigid bodies, compared with closed forms.
#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "lcp/physics/rigid_scene.h"
#include "lcp/physics/rotation.h"
#include "support/effort.h"
#include "support/errors.h"
#include "support/finite_differences.h"
#include "support/rigid_scenes.h"
#include "support/tensors.h"

namespace lcp::physics::rigid_motion_test {

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

constexpr auto kRigid = {RigidFormulation::kExactCone, RigidFormulation::kPolyhedral};
constexpr auto kAll = {RigidFormulation::kExactCone, RigidFormulation::kPolyhedral, RigidFormulation::kCompliant};

RigidOptions with(RigidFormulation formulation) {
  RigidOptions options;
  options.formulation = formulation;
  return options;
}

RigidBody cube(double side = 0.1) { return RigidBody::box(1, {side, side, side}); }

double value(const Tensor& x) { return x.item<double>(); }

class RigidMotionTest : public ::testing::Test {
 protected:
  void SetUp() override { torch::manual_seed(7); }
  torch::NoGradGuard no_grad_;
};

TEST_F(RigidMotionTest, JacobianIsTheDerivativeOfTheGaps) {
  RigidScene scene = scene_of({cube(), RigidBody::ball(2, 0.2), RigidBody::ball(1, 0.1)}, 0.01, 0.5, 0, 0.3);
  scene.planes.push_back({numbers({0.6, 0, 0.8}), number(0.05), 0, {1, 2}});  // one that moves with the cube
  RigidState state{torch::randn({3, 3}, torch::kDouble), torch::randn({3, 4}, torch::kDouble),
                   torch::randn({3, 3}, torch::kDouble), torch::randn({3, 3}, torch::kDouble)};
  const auto after = [&](double t) {
    const RigidState moved{state.position + t * state.velocity, turned(state.orientation, t * state.angular_velocity),
                           state.velocity, state.angular_velocity};
    return contacts(moved, scene);
  };
  const RigidContacts here = after(0);
  const std::vector<ContactPair> pairs = contact_pairs(scene);
  // 8 corners and two balls on the fixed plane, two balls on that of the cube, corners with balls, balls with each
  // other.
  ASSERT_EQ(pairs.size(), 10 + 2 + 16 + 1);
  ASSERT_EQ(here.gap.size(0), static_cast<std::int64_t>(pairs.size()));
  const Tensor nu = torch::cat({state.velocity, state.angular_velocity}, -1).flatten();
  const Tensor u = torch::matmul(here.J, nu).view({-1, 3});
  const Tensor rate = (after(1e-6).gap - after(-1e-6).gap) / 2e-6;
  EXPECT_LE(largest(u.select(-1, 2) - rate), 1e-7);
  // The tangents are a right-handed frame with the normal: rows of J that move a whole body along itself.
  const Tensor forces = here.J.view({-1, 3, 3, 6}).select(-2, 0).slice(-1, 0, 3).slice(0, 0, 8);
  EXPECT_LE(largest(torch::linalg_det(forces) - 1), 1e-14);
  EXPECT_LE(largest(torch::matmul(forces, forces.mT()) - torch::eye(3, torch::kDouble)), 1e-14);
}

TEST_F(RigidMotionTest, ImpulsesBetweenBodiesConserveMomentumAndAngularMomentum) {
  RigidScene scene = scene_of({RigidBody::ball(2, 0.2), RigidBody::ball(1, 0.1)}, 0.01, 0.5, 0.4);
  scene.planes.clear();
  scene.gravity = torch::zeros({3}, torch::kDouble);
  RigidState state = RigidState::at_rest(numbers({0, 0, 0, 0.3, 0.02, 0.01}).view({2, 3}));
  state.velocity = numbers({1, 0, 0, -1, 0.3, 0.2}).view({2, 3});
  state.angular_velocity = numbers({0, 3, 1, 2, 0, -4}).view({2, 3});
  const auto momenta = [&](const RigidState& s) {
    const Tensor mass = numbers({2, 1}).unsqueeze(-1), turning = numbers({0.4 * 2 * 0.04, 0.4 * 0.01}).unsqueeze(-1);
    const Tensor spin = torch::matmul(rotation_matrix(s.orientation), (turning * s.angular_velocity).unsqueeze(-1));
    return torch::cat(
        {(mass * s.velocity).sum(0), (torch::linalg_cross(s.position, mass * s.velocity) + spin.squeeze(-1)).sum(0)});
  };
  const RigidSolution after = simulate(state, no_forces(3, 2), scene);
  EXPECT_GT(largest(after.gamma), 0.1);
  // The bodies move while the step lasts, which changes the angular momentum by their distance times the impulse.
  EXPECT_LE(largest((momenta({after.next.position[2], after.next.orientation[2], after.next.velocity[2],
                              after.next.angular_velocity[2]}) -
                     momenta(state))
                        .slice(0, 0, 3)),
            1e-14);
  const Tensor between = state.position[0] - state.position[1], normal = between / between.norm();
  const auto approach = [&](const Tensor& v) { return value(((v[0] - v[1]) * normal).sum()); };
  EXPECT_NEAR(approach(after.next.velocity[0]), -0.4 * approach(state.velocity), 1e-12);
}

TEST_F(RigidMotionTest, ABodyThatFallsInAMediumReachesTheSpeedAtWhichDragCarriesIt) {
  RigidBody ball = RigidBody::ball(2, 0.1);
  ball.drag = number(3);
  const double dt = 0.01, speed = 2 * kGravity / 3;
  const RigidScene scene = scene_of({ball}, dt, 0.5);
  const RigidState start = RigidState::at_rest(numbers({0, 0, 100}).view({1, 3}));
  for (const auto formulation :
       {RigidFormulation::kExactCone, RigidFormulation::kPolyhedral, RigidFormulation::kCompliant}) {
    const RigidSolution end = simulate(start, no_forces(1000), scene, with(formulation));
    const double after_10_steps = value(end.next.velocity[9][0][2]);
    EXPECT_NEAR(after_10_steps, -speed * (1 - std::pow(1 - dt * 3 / 2, 10)), 1e-12);
    EXPECT_NEAR(value(end.next.velocity[999][0][2]), -speed, 1e-5 * speed);
  }
}

TEST_F(RigidMotionTest, ABlockOnAnInclineStartsToSlideAtTheAngleOfFriction) {
  for (const auto formulation : kRigid) {
    for (const double excess : {-1e-6, 1e-6}) {
      const double mu = 0.4, slope = std::atan(mu) + excess;
      const RigidScene scene = scene_of({cube()}, 0.01, mu, 0, slope);
      const RigidState start =
          pose({0.05 * std::sin(slope), 0, 0.05 * std::cos(slope)}, {std::cos(slope / 2), 0, std::sin(slope / 2), 0});
      const RigidSolution end = simulate(start, no_forces(100), scene, with(formulation));
      EXPECT_TRUE(everywhere(end.status == 0));
      const double acceleration = kGravity * std::max(0.0, std::sin(slope) - mu * std::cos(slope));
      EXPECT_NEAR(value(end.next.velocity[-1].norm()), acceleration, 1e-11) << excess;  // after a second
      EXPECT_NEAR(value((end.next.position[-1] - start.position).norm()), acceleration * 0.505, 1e-11) << excess;
    }
  }
}

TEST_F(RigidMotionTest, ASphereSlidesThenRolls) {
  for (const auto formulation : kAll) {
    const double mu = 0.3, v_0 = 1, dt = 1e-3;
    const RigidScene scene = scene_of({RigidBody::ball(1, 0.1)}, dt, mu);
    RigidState start = pose({0, 0, 0.1});
    start.velocity = numbers({v_0, 0, 0}).view({1, 3});
    const RigidSolution end = simulate(start, no_forces(300), scene, with(formulation));
    ASSERT_TRUE(everywhere(end.status == 0));
    const Tensor v = end.next.velocity.select(-1, 0).flatten(),
                 omega = end.next.angular_velocity.select(-1, 1).flatten();
    const double tolerance = formulation == RigidFormulation::kCompliant ? 1e-4 : 1e-12;
    EXPECT_NEAR(value(v[-1]), 5 * v_0 / 7, tolerance);
    const Tensor slides = (v - 0.1 * omega).abs() > 1e-4;
    const double until = dt * static_cast<double>(testing::count(slides));
    EXPECT_NEAR(until, 2 * v_0 / (7 * mu * kGravity), formulation == RigidFormulation::kCompliant ? 0.01 : dt);
  }
}

TEST_F(RigidMotionTest, ADiscOfThreePointsMovesAsTheTripod) {
  // docs/systems.md: the points carry 3.924, 2.943 and 2.943 N.
  const double mu = 0.33, dt = 0.005, inertia = 1e-2 / 6;
  const Tensor points = torch::tensor({{0.045, 0.0, 0.0}, {-0.03, 0.035, 0.0}, {-0.03, -0.035, 0.0}}, torch::kDouble);
  const RigidBody disc{number(1), inertia * torch::eye(3, torch::kDouble), points, torch::zeros({3}, torch::kDouble)};
  const RigidScene scene = scene_of({disc}, dt, mu);
  const auto moved = [&](double v_x, double v_y, double omega, std::int64_t steps) {
    RigidState start = pose({0, 0, 0});
    start.velocity = numbers({v_x, v_y, 0}).view({1, 3});
    start.angular_velocity = numbers({0, 0, omega}).view({1, 3});
    return simulate(start, no_forces(steps), scene);
  };
  EXPECT_NEAR(value(moved(1, 0, 0, 10).next.velocity[-1][0][0]), 1 - 10 * mu * kGravity * dt, 1e-12);
  const double braking = dt * mu * (3.924 * 0.045 + 2 * 2.943 * std::hypot(0.03, 0.035)) / inertia;
  EXPECT_NEAR(value(moved(0, 0, 8, 1).next.angular_velocity[-1][0][2]), 8 - braking, 1e-6);
  // With 256 directions the tripod ends at (.167350, .048711, 1.491087).
  const RigidSolution end = moved(1, 0.3, 8, 100);
  EXPECT_NEAR(value(end.next.position[-1][0][0]), 0.16735, 1e-3);
  EXPECT_NEAR(value(end.next.position[-1][0][1]), 0.04871, 1e-3);
  EXPECT_NEAR(2 * std::atan2(value(end.next.orientation[-1][0][3]), value(end.next.orientation[-1][0][0])), 1.4911,
              2e-3);
  EXPECT_LE(largest(end.next.velocity[-1]), 1e-12);
}

TEST_F(RigidMotionTest, ACubeDroppedFlatOnAnEdgeOrOnACornerComesToRestAsItShould) {
  const double edge = M_PI / 8, corner = std::acos(1 / std::sqrt(3)) / 2;
  for (const auto formulation : kRigid) {
    const RigidScene scene = scene_of({cube()}, 0.002, 0.8);
    const auto dropped = [&](const RigidState& start) {
      RigidSolution end = simulate(start, no_forces(1000), scene, with(formulation));
      EXPECT_TRUE(everywhere(end.status == 0));
      const Tensor E = energy(end.next, scene);
      EXPECT_LE(value((E.slice(0, 1) - E.slice(0, 0, -1)).max()), 1e-12);  // friction and inelastic impacts only take
      EXPECT_GE(value(contacts(end.next, scene).gap.min()), -2e-4);
      return end;
    };
    // Flat: it stops without turning, and does not sink in.
    const RigidSolution flat = dropped(pose({0, 0, 0.2}));
    EXPECT_NEAR(value(flat.next.position[-1][0][2]), 0.05, 1e-12);
    EXPECT_LE(largest(flat.next.velocity[-1]) + largest(flat.next.angular_velocity[-1]), 1e-9);
    EXPECT_LE(largest(flat.next.orientation[-1] - numbers({1, 0, 0, 0})), 1e-9);
    // On an edge and on a corner it is balanced: a small turn to one side makes it fall to that side.
    const RigidSolution on_edge = dropped(pose({0, 0, 0.2}, {std::cos(edge), 0.01, std::sin(edge), 0.01}));
    const RigidSolution on_corner = dropped(
        pose({0, 0, 0.2}, {std::cos(corner), std::sin(corner) * M_SQRT1_2, -std::sin(corner) * M_SQRT1_2, 0.02}));
    for (const RigidSolution& end : {on_edge, on_corner}) {
      EXPECT_NEAR(value(end.next.position[-1][0][2]), 0.05, 1e-6);
      EXPECT_LE(largest(end.next.velocity[-1]) + largest(end.next.angular_velocity[-1]), 1e-6);
    }
  }
}

// The height above the ground after the time `left` of a point that falls with the speed `down` from the height y, and
// bounces with the restitution e. `hit` becomes the speed of its slowest impact.
double bounced(double y, double down, double e, double left, double& hit) {
  for (;;) {
    const double speed = std::sqrt(down * down + 2 * kGravity * y), time = (speed - down) / kGravity;
    if (time >= left) return y - down * left - kGravity * left * left / 2;
    hit = std::min(hit, speed);
    if (e == 0) return 0;
    left -= time;
    y = 0;
    down = -e * speed;
  }
}

// Velocities are those of the middles of the steps, so that the motion is exact for a ball that begins to fall half a
// step earlier: its heights have no jump, and its slopes are those of the closed form.
TEST_F(RigidMotionTest, HeightsAfterBouncesAndTheirSlopesAreExact) {
  std::int64_t compared = 0, all = 0;
  for (const double dt : {1e-4, 1e-3, 5e-3, 1.2e-2, 2e-2}) {
    for (const double e : {0.0, 0.5, 1.0}) {
      const auto steps = static_cast<std::int64_t>(0.6 / dt);
      const std::int64_t count = testing::effort(dt < 1e-3 ? 100 : 900);
      all += count;
      const RigidScene scene = scene_of({RigidBody::ball(0.6, 0.12)}, dt, 0.3, e);
      const Tensor place = 0.5 + 0.7 * torch::rand({count}, torch::kDouble), nothing = torch::zeros_like(place);
      const Tensor up = torch::rand({count}, torch::kDouble) - 0.5;
      const auto along_z = [&](const Tensor& z) { return torch::stack({nothing, nothing, z}, -1).unsqueeze(1); };
      Tensor z, slope;
      {
        const torch::AutoGradMode grad(true);
        const Tensor first = place.clone().requires_grad_();
        RigidState start = RigidState::at_rest(along_z(first));
        start.velocity = along_z(up);
        const RigidSolution end = simulate(start, torch::zeros({steps, count, 1, 6}, torch::kDouble), scene);
        z = end.next.position[-1].select(-2, 0).select(-1, 2);
        slope = torch::autograd::grad({z.sum()}, {first})[0];
      }
      for (std::int64_t k = 0; k < count; ++k) {
        double slowest = 1e9, slower = 1e9, other = 1e9;
        const double y = value(place[k]) - 0.12, down = kGravity * dt / 2 - value(up[k]),
                     time = static_cast<double>(steps) * dt;
        const double expected = bounced(y, down, e, time, slowest);
        constexpr double kStep = 1e-6;
        const double above = bounced(y + kStep, down, e, time, slower),
                     below = bounced(y - kStep, down, e, time, other);
        if (slowest < 3 * kGravity * dt) continue;  // near the bounce threshold it comes to rest
        ASSERT_NEAR(value(z[k]) - 0.12, expected, 1e-10) << dt << ' ' << e << ' ' << k;
        if (std::abs(above - 2 * expected + below) > 1e-9) continue;  // it is just on the ground
        ASSERT_NEAR(value(slope[k]), (above - below) / (2 * kStep), 1e-5) << dt << ' ' << e << ' ' << k;
        ++compared;
      }
    }
  }
  EXPECT_GT(compared, all / 2);
}

TEST_F(RigidMotionTest, ABallBouncesToTheSquareOfTheRestitution) {
  for (const auto formulation : kRigid) {
    for (const double e : {0.0, 0.5, 0.8, 1.0}) {
      const double dt = 1e-3, height = 1;
      const RigidScene scene = scene_of({RigidBody::ball(1, 0.1)}, dt, 0.5, e);
      const RigidSolution end = simulate(pose({0, 0, 0.1 + height}), no_forces(900), scene, with(formulation));
      const Tensor z = end.next.position.select(-1, 2).flatten() - 0.1;
      EXPECT_GE(value(z.min()), -1e-5);
      const std::int64_t impact = z.slice(0, 0, 500).argmin().item<std::int64_t>();
      EXPECT_NEAR(value(z.slice(0, impact).max()), e * e * height, 1e-4) << e;
      EXPECT_NEAR(value(end.next.velocity.select(-1, 2).max()), e * std::sqrt(2 * kGravity * height), 0.01) << e;
    }
  }
}

TEST_F(RigidMotionTest, ABoxStaysOnTheFloorWithFrictionOfAnySize) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  for (const double mu : {0.5, 1e4, 1e9, 1e12, kInfinity}) {
    RigidState start = pose({0, 0, 0.0502});
    start.velocity = numbers({0.3, 0.1, 0}).view({1, 3});
    for (const bool turns : {false, true}) {
      if (turns) start.angular_velocity = numbers({0.2, 0.1, 0.5}).view({1, 3});
      const RigidSolution end = simulate(start, no_forces(200), scene_of({cube()}, 0.005, mu));
      EXPECT_TRUE(everywhere(end.status == 0)) << mu;
      EXPECT_GE(value(end.next.position.select(-1, 2).min()), 0.05 - 1e-4) << mu;
      EXPECT_LE(largest(end.next.velocity[-1]) + largest(end.next.angular_velocity[-1]), 1e-6) << mu;
    }
  }
}

// Balls that touch in a row, hit by another one, without gravity.
struct Row {
  RigidScene scene = scene_of({}, 1e-3, 0);
  RigidState state = pose({0, 0, 0});

  Row(std::int64_t count, double restitution) {
    std::vector<double> positions, speeds(3 * static_cast<std::size_t>(count), 0.0);
    for (std::int64_t b = 0; b < count; ++b) {
      scene.bodies.push_back(RigidBody::ball(1, 0.05));
      positions.insert(positions.end(), {b == 0 ? -0.1004 : 0.1 * static_cast<double>(b), 0, 0});
    }
    speeds[0] = 1;
    scene.planes.clear();
    scene.gravity = numbers({0, 0, 0});
    scene.restitution = numbers({restitution});
    state = RigidState::at_rest(numbers(positions).view({count, 3}));
    state.velocity = numbers(speeds).view({count, 3});
  }
};

TEST_F(RigidMotionTest, ARowOfBallsIsSolvedAtEverySpeed) {
  for (const double e : {0.0, 0.5, 0.9, 1.0}) {
    const Row row(6, e);
    const RigidSolution still = simulate(row.state, no_forces(600, 6), row.scene);
    EXPECT_TRUE(everywhere(still.status == 0)) << e;
    EXPECT_NEAR(value(still.next.velocity[-1].select(-1, 0).sum()), 1, 1e-12) << e;
    for (const double speed : {0.4, 30.0}) {
      RigidState moving = row.state;
      moving.velocity = moving.velocity + numbers({speed, -2 * speed, 0.3 * speed});
      const RigidSolution end = simulate(moving, no_forces(600, 6), row.scene);
      EXPECT_TRUE(everywhere(end.status == 0)) << e << ' ' << speed;
      // Balls that rebound meet many times; round-off of their gaps decides the order of the slowest impacts.
      EXPECT_LE(largest(end.next.velocity - numbers({speed, -2 * speed, 0.3 * speed}) - still.next.velocity),
                e == 0 || e == 1 ? 1e-6 : 1e-3)
          << e << ' ' << speed;
    }
  }
}

TEST_F(RigidMotionTest, AnImpactIsTheSameInEveryUnitOfLength) {
  for (const auto formulation : kRigid) {
    constexpr double kForce = 100, kStep = 0.005, kGap = 1e-3, kRestitution = 0.5;
    for (const double velocity : {-0.3, -0.1, 0.0, 0.1}) {  // of a ball above the ground that a force throws down
      const auto end = [&](double unit) {
        RigidScene scene = scene_of({RigidBody::ball(1, 0.1 * unit)}, kStep, 0.5, kRestitution);
        scene.gravity = scene.gravity * unit;
        RigidState start = pose({0, 0, (0.1 + kGap) * unit});
        start.velocity[0][2] = velocity * unit;
        Tensor u = no_forces(3);
        u[0][0][2] = -kForce * unit;
        const RigidSolution found = simulate(start, u, scene, with(formulation));
        EXPECT_TRUE(everywhere(found.status == 0));
        return torch::cat({found.next.position, found.next.velocity}, -1) / unit;
      };
      const Tensor metres = end(1);
      EXPECT_GT(value(metres[0][0][5]), 0);  // it bounces in the first step
      EXPECT_LE(largest(end(1000) - metres), 1e-9);
      // Velocities are those of the middles of the steps, so that at the beginning it falls with this speed.
      const double fall = kForce + 9.81, first = -velocity + fall * kStep / 2;
      const double hit = std::sqrt(first * first + 2 * fall * kGap), time = (hit - first) / fall, rest = kStep - time;
      const double up = kRestitution * hit;
      EXPECT_NEAR(value(metres[0][0][2]), 0.1 + up * rest - fall * rest * rest / 2, 1e-12) << velocity;
      EXPECT_NEAR(value(metres[0][0][5]), up + fall * (time - kStep / 2), 1e-12) << velocity;
    }
  }
}

TEST_F(RigidMotionTest, AStackAtRestStaysAtRest) {
  const Stack stack(3);
  const RigidSolution end = simulate(stack.state, no_forces(10000, 3), stack.scene);
  EXPECT_TRUE(everywhere(end.status == 0));
  EXPECT_LE(largest(end.next.position[-1] - stack.state.position), 1e-9);
  EXPECT_LE(largest(end.next.velocity), 1e-10);
  for (const auto formulation : {RigidFormulation::kPolyhedral, RigidFormulation::kCompliant}) {
    const RigidSolution other = simulate(stack.state, no_forces(200, 3), stack.scene, with(formulation));
    EXPECT_TRUE(everywhere(other.status == 0));
    const double sinks = formulation == RigidFormulation::kCompliant ? 1e-3 : 1e-9;
    EXPECT_LE(largest(other.next.position[-1] - stack.state.position), sinks);
  }
  for (const std::int64_t count : {4, 8}) {
    const Stack high(count);
    const RigidSolution other =
        simulate(high.state, no_forces(50, count), high.scene, with(RigidFormulation::kPolyhedral));
    EXPECT_TRUE(everywhere(other.status == 0)) << count;
    EXPECT_LE(largest(other.next.position[-1] - high.state.position), 1e-9) << count;
  }
}

TEST_F(RigidMotionTest, APyramidOfManyDirectionsApproachesTheConeAndAStiffGroundTheRigidOne) {
  RigidScene scene = scene_of({cube()}, 0.005, 0.4);
  RigidState start = pose({0, 0, 0.05});
  start.velocity = numbers({1, 0.4, 0}).view({1, 3});
  start.angular_velocity = numbers({0, 0, 5}).view({1, 3});
  const auto end = [&](const RigidOptions& options) {
    return simulate(start, no_forces(40), scene, options).next.velocity[-1];
  };
  const Tensor exact = end({});
  RigidOptions polyhedral = with(RigidFormulation::kPolyhedral);
  polyhedral.directions.count = 4;
  const double coarse = largest(end(polyhedral) - exact);
  polyhedral.directions.count = 32;
  EXPECT_LE(largest(end(polyhedral) - exact), 0.1 * coarse);
  RigidOptions compliant = with(RigidFormulation::kCompliant);
  compliant.regularization = {1e-8, 1e-3};
  scene.stiffness = numbers({1e7});
  EXPECT_LE(largest(end(compliant) - exact), 0.05);  // a convex relaxation that lifts what slides
}

TEST_F(RigidMotionTest, SubstepsAreTheStepsOfAFinerRollout) {
  const RigidScene scene = scene_of({cube()}, 0.005, 0.4, 0.3);
  RigidState start = pose({0, 0, 0.1}, {0.9, 0.2, -0.3, 0.1});
  start.velocity = numbers({1, 0.4, 0}).view({1, 3});
  RigidOptions options;
  options.substeps = 4;
  const RigidSolution coarse = simulate(start, no_forces(25), scene, options),
                      fine = simulate(start, no_forces(100), scene);
  EXPECT_TRUE(coarse.next.position.equal(fine.next.position.slice(0, 3, 100, 4)));
  EXPECT_TRUE(coarse.next.orientation.equal(fine.next.orientation.slice(0, 3, 100, 4)));
  EXPECT_LE(largest(coarse.gamma - fine.gamma.unflatten(0, {25, 4}).sum(1)), 1e-14);
  EXPECT_TRUE(coarse.iterations.equal(fine.iterations.unflatten(0, {25, 4}).sum(1)));
  EXPECT_LE(largest(certify_rollout(start, no_forces(25), scene, options, coarse).residual -
                    certify_rollout(start, no_forces(100), scene, {}, fine).residual.unflatten(0, {25, 4}).amax(1)),
            1e-12);
}

TEST_F(RigidMotionTest, AnElementMovesAsAloneWhateverTheOthersDo) {
  const RigidScene scene = scene_of({cube()}, 0.005, 0.4, 0.3);
  RigidState start{torch::randn({6, 1, 3}, torch::kDouble) * 0.02 + numbers({0, 0, 0.12}),
                   torch::randn({6, 1, 4}, torch::kDouble), torch::randn({6, 1, 3}, torch::kDouble),
                   3 * torch::randn({6, 1, 3}, torch::kDouble)};
  start.velocity[2] = std::numeric_limits<double>::quiet_NaN();
  for (const auto formulation : kAll) {
    const RigidSolution all = simulate(start, no_forces(60).unsqueeze(1), scene, with(formulation));
    EXPECT_TRUE(everywhere(all.status.select(1, 2) == 4));
    EXPECT_TRUE(everywhere(all.next.position.select(1, 2).isnan()));
    for (const std::int64_t k : {0, 1, 3, 4, 5}) {
      const RigidSolution alone =
          simulate({start.position[k], start.orientation[k], start.velocity[k], start.angular_velocity[k]},
                   no_forces(60), scene, with(formulation));
      EXPECT_TRUE(everywhere(alone.status == 0));
      EXPECT_TRUE(all.next.position.select(1, k).equal(alone.next.position)) << k;
      EXPECT_TRUE(all.gamma.select(1, k).equal(alone.gamma)) << k;
    }
  }
}

TEST_F(RigidMotionTest, NamesWhatDoesNotFit) {
  const RigidScene scene = scene_of({cube()}, 0.01);
  const RigidState start = pose({0, 0, 1});
  const auto error_of = [&](const RigidState& state, const Tensor& u, const RigidScene& with,
                            RigidOptions options = {}) {
    return testing::error_of([&] { simulate(state, u, with, options); });
  };
  EXPECT_EQ(error_of(start, no_forces(2, 2), scene), "u must be [rows, ..., 1, 6]; got [2, 2, 6]");
  RigidState turned_wrong = start;
  turned_wrong.orientation = numbers({0, 0, 0}).view({1, 3});
  EXPECT_EQ(error_of(turned_wrong, no_forces(2), scene), "orientation must be [..., 1, 4]; got [1, 3]");
  RigidScene wrong = scene;
  wrong.mu = numbers({0.1, 0.2});
  EXPECT_EQ(error_of(start, no_forces(2), wrong),
            "mu must be [..., 1] or [..., 8], as there are pairs of contact; got [2]");
  wrong = scene;
  wrong.planes[0].body = 3;
  EXPECT_EQ(error_of(start, no_forces(2), wrong), "a plane names body 3 of 1");
  RigidOptions options;
  options.stabilization = 2;
  EXPECT_EQ(error_of(start, no_forces(2), scene, options), "stabilization must be in [0, 1]; got 2");
  RigidScene soft = scene;
  soft.stiffness = soft.dissipation = numbers({1});
  options = with(RigidFormulation::kCompliant);
  options.kappa = 1e-3;
  EXPECT_EQ(error_of(start, no_forces(2), soft, options), "kappa must be 0 for compliant contact; got 0.001");
}

}  // namespace lcp::physics::rigid_motion_test
