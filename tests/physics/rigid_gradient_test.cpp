// Derivatives of steps and rollouts of rigid bodies, compared with finite differences.
#include <gtest/gtest.h>
#include <torch/autograd.h>
#include <torch/nn/functional/normalization.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "lcp/physics/rigid_scene.h"
#include "support/effort.h"
#include "support/finite_differences.h"
#include "support/rigid_scenes.h"
#include "support/tensors.h"

namespace lcp::physics::rigid_gradient_test {

using testing::Inputs;
using testing::kGravity;
using testing::no_forces;
using testing::number;
using testing::numbers;
using testing::pose;
using testing::scene_of;
using torch::Tensor;

constexpr auto kAll = {RigidFormulation::kExactCone, RigidFormulation::kPolyhedral, RigidFormulation::kCompliant};

RigidOptions with(RigidFormulation formulation) {
  RigidOptions options;
  options.formulation = formulation;
  options.directions = {6, 0.2};
  options.regularization = {1e-3, 0.1};
  return options;
}

// A box on or above an inclined plane, and all that its motion depends on, in the order of `everything`.
struct Case {
  std::string name;
  RigidState start;
  Tensor u;
  double restitution = 0.01;  // not 0, at which differences would leave its range
  std::int64_t steps = 1;
};

Inputs everything(const Case& c) {
  return {c.start.position,
          c.start.orientation,
          c.start.velocity,
          c.start.angular_velocity,
          c.u,
          number(1.2),                 // mass
          numbers({0.1, 0.12, 0.14}),  // size
          number(0.1),                 // slope
          numbers({0, 0.2, -kGravity}),
          numbers({0.4}),  // mu
          numbers({c.restitution}),
          numbers({1e4}),
          numbers({0.02})};
}

constexpr double kStep = 0.005;

RigidScene scene_in(const Inputs& x) {
  return {{RigidBody::box(x[5], x[6])},
          {Plane::inclined(x[7], torch::zeros_like(x[7]))},
          kStep,
          x[8],
          x[9],
          x[10],
          x[11],
          x[12]};
}

Tensor end_of(const Inputs& x, std::int64_t steps, const RigidOptions& options) {
  const RigidScene scene = scene_in(x);
  const RigidSolution end = simulate({x[0], x[1], x[2], x[3]}, x[4].unsqueeze(0).expand({steps, 1, 6}), scene, options);
  EXPECT_TRUE((end.status == 0).all().item<bool>());
  const auto last = [](const Tensor& all) { return all[-1].flatten(); };
  return torch::cat({10 * last(end.next.position), last(end.next.orientation), last(end.next.velocity),
                     last(end.next.angular_velocity)});
}

// The box on its face on the plane, and moved from there.
RigidState lying(const std::vector<double>& velocity, const std::vector<double>& omega, double height) {
  RigidState state = pose({height * std::sin(0.1), 0, height * std::cos(0.1)}, {std::cos(0.05), 0, std::sin(0.05), 0});
  state.velocity = numbers(velocity).view({1, 3});
  state.angular_velocity = numbers(omega).view({1, 3});
  return state;
}

Case tumbling(double height, std::int64_t steps) {
  Case c{"tumbles", lying({0.5, -0.3, -0.6}, {2, -1, 3}, height), no_forces(1)[0], 0.4, steps};
  c.start.orientation = numbers({0.8, 0.3, -0.4, 0.2}).view({1, 4});
  return c;
}

std::vector<Case> steps() {
  const Tensor pushed = numbers({0.3, 0.2, -1, 0.01, 0.02, -0.01}).view({1, 6});
  const Tensor pulled = numbers({0.3, 0.2, -1, 0, 0, 0}).view({1, 6});
  std::vector<Case> cases = {
      {"flies", lying({1, 0.2, 0.3}, {1, 2, 3}, 0.2), pushed},
      {"sticks", lying({0, 0, 0}, {0, 0, 0}, 0.07 - 2e-4), pushed},
      // Sliding corners of a box that turns would not determine how it does.
      {"slides", lying({1, 0.4, -0.1}, {0, 0, 0}, 0.07 - 2e-4), pulled},
      {"arrives slowly", lying({0.3, 0.1, -0.03}, {0, 0, 0}, 0.07 + 1e-4), pulled},
      {"bounces on one corner", tumbling(0.09, 1).start, pushed, 0.4},
  };
  return cases;
}

class RigidGradientTest : public ::testing::Test {
 protected:
  void SetUp() override { torch::manual_seed(9); }
};

TEST_F(RigidGradientTest, AStepHasTheDerivativeOfFiniteDifferencesInAllItsArguments) {
  for (const auto formulation : kAll) {
    for (const Case& c : steps()) {
      const auto f = [&](const Inputs& x) { return end_of(x, 1, with(formulation)); };
      const RigidSolution end = step(c.start, c.u, scene_in(everything(c)), with(formulation));
      EXPECT_TRUE(formulation == RigidFormulation::kCompliant ||
                  (end.gamma != 0).any().item<bool>() == (c.name != "flies"))
          << c.name;
      EXPECT_LE(testing::gradient_error(f, everything(c), 1e-7), 2e-5)
          << c.name << " " << static_cast<int>(formulation);
    }
  }
}

// Where `first` ends to hold between low, where it does, and high, where it does not.
double border(double low, double high, const std::function<bool(double)>& first) {
  EXPECT_TRUE(first(low) && !first(high));
  for (int k = 0; k < 50; ++k) {
    const double middle = (low + high) / 2;
    (first(middle) ? low : high) = middle;
  }
  return low;
}

TEST_F(RigidGradientTest, AStepHasTheDerivativeOfFiniteDifferencesOnBothSidesOfItsBranches) {
  for (const auto formulation : {RigidFormulation::kExactCone, RigidFormulation::kPolyhedral}) {
    const auto error = [](const Case& c, const RigidOptions& options) {
      const auto f = [&](const Inputs& x) { return end_of(x, 1, options); };
      return testing::gradient_error(f, everything(c), 1e-7);
    };
    const auto after = [](const Case& c, const RigidOptions& options) {
      return step(c.start, c.u, scene_in(everything(c)), options);
    };
    const Case bounce = steps()[4];
    ASSERT_EQ(bounce.name, "bounces on one corner");
    // An impact becomes a contact that closes its gap.
    RigidOptions options = with(formulation);
    const auto upwards = [&](double threshold) {
      options.bounce_threshold = threshold;
      return after(bounce, options).next.velocity[0][2].item<double>();
    };
    const double rebound = upwards(0);
    const double threshold = border(0, 100, [&](double x) { return upwards(x) == rebound; });
    for (const double side : {0.999, 1.001}) {
      options.bounce_threshold = side * threshold;
      EXPECT_LE(error(bounce, options), 2e-5) << side;
    }
    EXPECT_GT(rebound, upwards(1.001 * threshold) + 0.1);
    // An impact within the step becomes one that the step does not reach.
    options.bounce_threshold = 0;
    const auto higher = [&](double by) {
      Case c = bounce;
      c.start.position = bounce.start.position + numbers({0, 0, by});
      return c;
    };
    const double reach =
        border(0, 0.1, [&](double by) { return (after(higher(by), options).gamma != 0).any().item<bool>(); });
    for (const double side : {-1e-5, 1e-5}) EXPECT_LE(error(higher(reach + side), options), 2e-5) << side;
    // Less of a penetration than all of it is removed; a gap may be closed wholly.
    options = with(formulation);
    options.stabilization = 0.5;
    for (const double side : {-1e-5, 1e-5}) {
      const Case c{"sticks", lying({0, 0, 0}, {0, 0, 0}, 0.07 + side), bounce.u};
      EXPECT_LE(error(c, options), 2e-5) << side;
    }
  }
}

TEST_F(RigidGradientTest, AStepHasTheSecondDerivativeOfFiniteDifferences) {
  for (const auto formulation : kAll) {
    for (const Case& c : steps()) {
      if (c.name == "sticks" && formulation == RigidFormulation::kPolyhedral) continue;  // ties of its directions
      const Inputs all = everything(c);
      const auto f = [&](const Inputs& x) {  // of the velocity, mu and the size
        Inputs inputs = all;
        inputs[2] = x[0];
        inputs[9] = x[1];
        inputs[6] = x[2];
        return end_of(inputs, 1, with(formulation));
      };
      EXPECT_LE(testing::second_gradient_error(f, {all[2], all[9], all[6]}, 1e-6), 1e-3)
          << c.name << " " << static_cast<int>(formulation);
    }
  }
}

TEST_F(RigidGradientTest, ARolloutHasTheDerivativeOfFiniteDifferencesWhereItsCertificateSaysSo) {
  for (const auto formulation : kAll) {
    const Case c = tumbling(0.11, 40);
    const Inputs x = everything(c);
    const RigidScene scene = scene_in(x);
    const Tensor u = c.u.unsqueeze(0).expand({c.steps, 1, 6});
    const RigidSolution rollout = simulate(c.start, u, scene, with(formulation));
    const RigidCertificate certificate = certify_rollout(c.start, u, scene, with(formulation), rollout, 1e-5);
    EXPECT_EQ(certificate.unsolved.item<std::int64_t>(), 0);
    EXPECT_EQ(certificate.kinked.item<std::int64_t>(), 0) << static_cast<int>(formulation);
    EXPECT_LE(certificate.residual.max().item<double>(), 1e-8);
    EXPECT_GT((rollout.gamma != 0).any(-1).sum().item<std::int64_t>(), 5);
    const auto f = [&](const Inputs& inputs) { return end_of(inputs, c.steps, with(formulation)); };
    EXPECT_LE(testing::gradient_error(f, x, 1e-8), 1e-4) << static_cast<int>(formulation);
  }
}

TEST_F(RigidGradientTest, RandomRolloutsHaveTheDerivativeOfFiniteDifferencesWhereTheirCertificatesSaySo) {
  const int rollouts = testing::long_tests() ? 20 : 6;
  for (const auto formulation : kAll) {
    int smooth = 0;
    for (int k = 0; k < rollouts; ++k) {
      Case c = tumbling(0.11 + 0.0005 * k, 30 + k % 20);
      c.start.orientation = torch::nn::functional::normalize(torch::randn({1, 4}, torch::kDouble));
      c.start.velocity = 0.5 * torch::randn({1, 3}, torch::kDouble);
      c.start.angular_velocity = 3 * torch::randn({1, 3}, torch::kDouble);
      c.restitution = k % 2 == 0 ? 0.1 : 0.4;
      const Inputs x = everything(c);
      const RigidScene scene = scene_in(x);
      const Tensor u = c.u.unsqueeze(0).expand({c.steps, 1, 6});
      const RigidSolution rollout = simulate(c.start, u, scene, with(formulation));
      const RigidCertificate certificate = certify_rollout(c.start, u, scene, with(formulation), rollout, 1e-5);
      ASSERT_EQ(certificate.unsolved.item<std::int64_t>(), 0) << k;
      if (certificate.kinked.item<std::int64_t>() > 0) continue;
      ++smooth;
      RigidOptions accurate = with(formulation);
      if (formulation == RigidFormulation::kExactCone) accurate.tolerance = 1e-13;
      const auto f = [&](const Inputs& inputs) { return end_of(inputs, c.steps, accurate); };
      EXPECT_LE(testing::gradient_error(f, x, 1e-8), 1e-3) << static_cast<int>(formulation) << " " << k;
    }
    EXPECT_GE(smooth, rollouts / 4) << static_cast<int>(formulation);
  }
}

// Balls in a row that meet several times within one step.
TEST_F(RigidGradientTest, ImpactsOneAfterAnotherHaveTheDerivativesOfFiniteDifferences) {
  const Tensor position = numbers({-0.003, 0, 1, 0.1003, 0.004, 1, 0.2012, 0, 1, 0.3027, 0.004, 1}).view({4, 3});
  const Tensor velocity = numbers({3, 0.1, 0, 0, 0, 0, 0, 0.1, 0, -1, 0, 0}).view({4, 3});
  const Tensor omega = numbers({1, 2, 3, 0, 0, 0, 0, 1, 0, 3, -1, 0}).view({4, 3});
  for (const auto formulation : {RigidFormulation::kExactCone, RigidFormulation::kPolyhedral}) {
    for (const double friction : {0.0, 0.3}) {
      RigidOptions options = with(formulation);
      if (formulation == RigidFormulation::kExactCone) options.tolerance = 1e-13;
      const auto end = [&](const Inputs& x) {
        RigidScene scene{{}, {}, 0.005, x[4], numbers({friction}), x[5]};
        for (int k = 0; k < 4; ++k) scene.bodies.push_back(RigidBody::ball(x[3][k], x[6]));
        const RigidState start = {x[0], numbers({1, 0, 0, 0}).expand({4, 4}), x[1], x[2]};
        return step(start, no_forces(1, 4)[0], scene, options);
      };
      const auto f = [&](const Inputs& x) {
        const RigidSolution after = end(x);
        return torch::cat({10 * after.next.position.flatten(), after.next.orientation.flatten(),
                           after.next.velocity.flatten(), after.next.angular_velocity.flatten()});
      };
      const Inputs x = {position,       velocity,    omega, numbers({1, 1.3, 0.8, 1.5}), numbers({0, 0, -kGravity}),
                        numbers({0.7}), number(0.05)};
      const RigidSolution after = end(x);
      ASSERT_EQ(after.status.item<int>(), 0);
      EXPECT_GE((after.gamma.view({-1, 3}).select(-1, 2) > 0).sum().item<int>(), 3);
      EXPECT_LE(testing::gradient_error(f, x, 1e-7), 1e-5) << static_cast<int>(formulation) << " " << friction;
      if (formulation == RigidFormulation::kPolyhedral && friction == 0) continue;  // ties of its directions
      const auto of_some = [&](const Inputs& some) { return f({some[0], some[1], omega, some[2], x[4], x[5], x[6]}); };
      EXPECT_LE(testing::second_gradient_error(of_some, {x[0], x[1], x[3]}, 1e-6), 1e-3)
          << static_cast<int>(formulation) << " " << friction;
    }
  }
}

TEST_F(RigidGradientTest, ABounceHasTheDerivativeOfTheMotionWithoutSteps) {
  // From the height h above the plane: the time of impact, and so the position afterwards, depends on h although the
  // step of the impact does not change.
  const double e = 0.6, duration = 0.6;
  const auto end = [&](const Tensor& height) {
    const RigidScene scene = scene_of({RigidBody::ball(1, 0.1)}, 1e-3, 0.5, e);
    RigidState start = pose({0, 0, 0});
    start.position = torch::stack({number(0), number(0), 0.1 + height}).view({1, 3});
    return simulate(start, no_forces(600), scene).next.position[-1][0][2];
  };
  const Tensor height = number(1).requires_grad_();
  const double slope = torch::autograd::grad({end(height)}, {height})[0].item<double>();
  // z = e g t_0 (t - t_0) - g (t - t_0)^2 / 2 with t_0 = sqrt(2 h / g).
  const double t_0 = std::sqrt(2 / kGravity), after = duration - t_0, dt_0 = t_0 / 2;
  const double expected = (e * kGravity * (after - t_0) + kGravity * after) * dt_0;
  EXPECT_NEAR(slope, expected, 0.06 * std::abs(expected));
}

// An element that starts badly gives no NaN to the gradient of what it shares with others, if the loss leaves it out;
// its own is then 0, else NaN.
TEST_F(RigidGradientTest, ABadStartStaysOutOfTheGradientOfWhatIsShared) {
  const Case c = tumbling(0.09, 6);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const std::vector<std::pair<std::size_t, double>> faults = {{0, nan},   {1, nan}, {1, 0},
                                                              {1, 1e200}, {3, nan}, {4, nan}};
  const auto count = static_cast<std::int64_t>(faults.size());
  Inputs all = everything(c), alone = all;
  for (std::size_t k = 0; k < 5; ++k) all[k] = all[k].expand({count + 1, -1, -1}).clone();
  for (std::int64_t i = 0; i < count; ++i) all[faults[i].first][i + 1].fill_(faults[i].second);
  const auto gradients = [&](const Inputs& inputs, const RigidOptions& options, bool masked) {
    Inputs leaves;
    for (const Tensor& x : inputs) leaves.push_back(x.clone().requires_grad_());
    const RigidSolution end = simulate({leaves[0], leaves[1], leaves[2], leaves[3]},
                                       leaves[4].unsqueeze(0).expand({c.steps, -1, -1, -1}), scene_in(leaves), options);
    const Tensor sum = end.next.position.sum({-2, -1}) + end.gamma.sum(-1);
    return torch::autograd::grad({(masked ? torch::where(end.status == 0, sum, 0) : sum).sum()}, leaves, {}, {}, false,
                                 /*allow_unused=*/true);
  };
  for (std::size_t k = 0; k < 5; ++k) alone[k] = alone[k].unsqueeze(0);
  for (const auto formulation : kAll) {
    for (const double kappa : {0.0, 1e-4}) {
      RigidOptions options = with(formulation);
      if (kappa > 0 && formulation == RigidFormulation::kCompliant) continue;
      options.kappa = kappa;
      const std::string name = std::to_string(static_cast<int>(formulation)) + ", kappa " + std::to_string(kappa);
      const Inputs masked = gradients(all, options, true), whole = gradients(all, options, false);
      const Inputs expected = gradients(alone, options, true);
      for (std::size_t k = 0; k < all.size(); ++k) {
        if (!expected[k].defined()) continue;
        const bool shared = k >= 5;
        const Tensor found = shared ? masked[k] : masked[k][0], right = shared ? expected[k] : expected[k][0];
        const double scale = 1 + right.abs().max().item<double>();
        EXPECT_LE((found - right).abs().max().item<double>(), 1e-10 * scale) << name << ", input " << k;
        EXPECT_TRUE(shared || (masked[k].slice(0, 1) == 0).all().item<bool>()) << name << ", input " << k;
      }
      for (std::int64_t i = 0; i < count; ++i) {
        EXPECT_TRUE(whole[faults[i].first][i + 1].isnan().all().item<bool>()) << name << ", fault " << i;
      }
    }
  }
}

// The derivative of the velocity of a ball in y by a force in y, times mass / dt, while a force in x makes it roll.
double share_of_force(const RigidOptions& options, double force = 0) {
  const RigidScene scene = scene_of({RigidBody::ball(1, 0.1)}, 0.01, 0.5);
  const auto velocity = [&](const Tensor& y) {
    const Tensor none = torch::zeros_like(y);
    const Tensor u = torch::stack({none + 0.3, y, none, none, none, none}).view({1, 6});
    return step(pose({0, 0, 0.1}), u, scene, options).next.velocity[0][1] / scene.dt;
  };
  if (force > 0) return (velocity(number(force)) - velocity(number(-force))).item<double>() / (2 * force);
  const Tensor y = number(0).requires_grad_();
  return torch::autograd::grad({velocity(y)}, {y})[0].item<double>();
}

TEST_F(RigidGradientTest, TiesOfPolyhedralContactAreTakenAsTheOptionSays) {
  RigidOptions options;
  options.formulation = RigidFormulation::kPolyhedral;
  const double rolling = 5. / 7;  // m r^2 / (m r^2 + inertia) of a solid ball goes into its rotation
  EXPECT_NEAR(share_of_force(options), rolling, 1e-9);
  EXPECT_NEAR(share_of_force(options, 1e-4), rolling, 1e-7);
  options.ties = "inactive";
  EXPECT_NEAR(share_of_force(options), 1, 1e-9);
  options.ties = Ties::kMidpoint;
  EXPECT_NEAR(share_of_force(options), (rolling + 1) / 2, 1e-9);
  options.ties = "neither";
  EXPECT_THROW(share_of_force(options), c10::Error);
}

TEST_F(RigidGradientTest, ASmoothedGradientOfPolyhedralContactTendsToFiniteDifferences) {
  const Case c = tumbling(0.09, 1);
  const auto error = [&](double kappa) {
    RigidOptions options = with(RigidFormulation::kPolyhedral);
    options.kappa = kappa;
    return testing::gradient_error([&](const Inputs& x) { return end_of(x, 1, options); }, everything(c), 1e-7);
  };
  EXPECT_GT(error(1e-3), 1e-4);
  EXPECT_LE(error(1e-9), 1e-4);
}

TEST_F(RigidGradientTest, ASmoothedGradientSeesTheWallBeforeTheBallArrives) {
  RigidScene scene = scene_of({RigidBody::ball(1, 0.1)}, 0.01);
  RigidState start = pose({0, 0, 0.15});
  for (const auto formulation : {RigidFormulation::kExactCone, RigidFormulation::kPolyhedral}) {
    RigidOptions options;
    options.formulation = formulation;
    const auto slope_of_end = [&] {
      const Tensor position = start.position.clone().requires_grad_();
      const Tensor end =
          simulate({position, start.orientation, start.velocity, start.angular_velocity}, no_forces(5), scene, options)
              .next.position[-1][0][2];
      return torch::autograd::grad({end}, {position})[0][0][2].item<double>();
    };
    EXPECT_NEAR(slope_of_end(), 1, 1e-12);
    options.kappa = 0.1;
    EXPECT_LT(slope_of_end(), 0.95);
    EXPECT_GT(slope_of_end(), 0.5);
  }
}

}  // namespace lcp::physics::rigid_gradient_test
