#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <cmath>
#include <limits>

#include "lcp/certify_contact.h"
#include "lcp/physics/compliant_block.h"
#include "lcp/physics/compliant_particle.h"
#include "lcp/solve.h"
#include "support/errors.h"
#include "support/finite_differences.h"
#include "support/tensors.h"

namespace lcp::physics::compliant_test {

using testing::everywhere;
using testing::largest;
using testing::numbers;
using torch::Tensor;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

CompliantParticle particle(double stiffness = 1e5, double dissipation = 0.02, double dt = 0.01, double mu = 0.5,
                           const RegularizationOptions& regularization = {}) {
  return CompliantParticle::of(1, dt, 9.81, CompliantGround::of(mu, stiffness, dissipation, regularization));
}

CompliantBlock block(double stiffness = 1e5, double dissipation = 0.02, double dt = 0.01, double mu = 0.5,
                     const RegularizationOptions& regularization = {}) {
  return CompliantBlock::of(2, 1, 0.4, dt, 9.81, CompliantGround::of(mu, stiffness, dissipation, regularization));
}

Tensor random(std::initializer_list<std::int64_t> shape) { return torch::randn(shape, torch::kDouble); }

ContactOptions exact_solve() {
  ContactOptions options;
  options.tolerance = 1e-14;
  return options;
}

class CompliantTest : public ::testing::Test {
 protected:
  void SetUp() override { torch::manual_seed(3); }

  // Near the ground, so that some touch it and some do not.
  static CompliantState states(std::int64_t count) {
    return {random({count, 3}) * numbers({1, 1, 2e-3}), random({count, 3}) * numbers({0.3, 0.3, 0.1})};
  }
};

TEST_F(CompliantTest, AParticleStepsAsInClosedForm) {
  const CompliantState state = states(500);
  const Tensor u = 10 * random({500, 3});
  for (const double mu : {0.0, 0.5}) {
    const CompliantParticle body = particle(1e5, 0.02, 0.01, mu);
    const CompliantSolution solution = step(state, u, body);
    const CompliantStep exact = exact_step(state, u, body);
    EXPECT_TRUE(everywhere(solution.status == 0));
    EXPECT_LE(largest(solution.step.next.velocity - exact.next.velocity), 1e-9);
    EXPECT_LE(largest(solution.step.next.position - exact.next.position), 1e-11);
    EXPECT_LE(largest(solution.step.gamma - exact.gamma), 1e-9);
    const Tensor pressed = exact.gamma.select(-1, 2) > 0;
    EXPECT_TRUE(pressed.any().item<bool>() && !everywhere(pressed));
  }
}

TEST_F(CompliantTest, AParticleThatSticksCreeps) {
  const CompliantParticle body = particle();
  const Tensor u = numbers({2, 0, 0}).expand({300, 3});
  const auto end = simulate({numbers({0, 0, 0}), numbers({0, 0, 0})}, u, body).step;
  EXPECT_NEAR(end.next.velocity[-1][0].item<double>(), 2.0e-5, 1e-12);    // R_t dt u
  EXPECT_NEAR(end.next.position[-1][2].item<double>(), -9.81e-5, 1e-10);  // -m g / k
  EXPECT_LE(largest(end.gamma[-1] - numbers({-0.02, 0, 0.0981})), 1e-9);
}

TEST_F(CompliantTest, AParticleThatSlidesHovers) {
  for (const double dt : {0.01, 1e-3}) {
    for (const double dissipation : {0.0, 0.02}) {
      const CompliantParticle body = particle(1e5, dissipation, dt);
      // Pushed so that it keeps its velocity.
      const Tensor u = numbers({0.5 * 9.81, 0, 0}).expand({static_cast<std::int64_t>(3 / dt), 3});
      const auto end = simulate({numbers({0, 0, 0}), numbers({1, 0, 0})}, u, body).step;
      const double v = end.next.velocity[-1][0].item<double>();
      EXPECT_NEAR(end.next.position[-1][2].item<double>(), -9.81e-5 + 0.5 * (dt + dissipation) * v, 1e-6 * v);
      EXPECT_NEAR((end.gamma[-1][0] / end.gamma[-1][2]).item<double>(), -0.5, 1e-9);
    }
    // Pushed harder it gains height as it gains speed, and its friction is Coulomb's.
    const auto end = simulate({numbers({0, 0, 0}), numbers({1, 0, 0})}, numbers({10, 0, 0}).expand({500, 3}),
                              particle(1e5, 0.02, dt))
                         .step;
    const Tensor gained = (end.next.velocity[-1] - end.next.velocity[-101]) / (100 * dt);
    EXPECT_NEAR(gained[0].item<double>(), 10 - 0.5 * 9.81, 1e-3);
    EXPECT_NEAR(end.next.velocity[-1][2].item<double>(), 0.5 * (dt + 0.02) * 5.095, 1e-4);
  }
}

TEST_F(CompliantTest, AParticleThatBrakesStopsWithinAStepOrTwo) {
  const auto end =
      simulate({numbers({0, 0, -9.81e-5}), numbers({2, 0, 0})}, torch::zeros({60, 3}, torch::kDouble), particle()).step;
  const Tensor v = end.next.velocity.select(-1, 0);
  EXPECT_GT(v[40].item<double>(), 1e-3);
  EXPECT_LT(std::abs(v[43].item<double>()), 1e-3);
  EXPECT_NEAR(end.next.position[-1][0].item<double>(), 0.4077, 0.02);  // v^2 / (2 mu g)
}

TEST_F(CompliantTest, MomentumIsWhatImpulsesGive) {
  const CompliantParticle body = particle();
  const auto end =
      simulate({numbers({0, 0, 0.1}), numbers({0.5, -0.2, -1})}, torch::zeros({200, 3}, torch::kDouble), body).step;
  const Tensor given = end.gamma.sum(0) - 200 * 0.01 * numbers({0, 0, 9.81});
  EXPECT_LE(largest(end.next.velocity[-1] - numbers({0.5, -0.2, -1}) - given), 1e-12 * 200);
}

TEST_F(CompliantTest, ABlockStepsAsItsDualLcp) {
  const std::int64_t count = 300;
  CompliantState state{random({count, 3}) * numbers({1, 2e-3, 0.01}) + numbers({0, 0.2, 0}),
                       random({count, 3}) * numbers({0.3, 0.1, 0.3})};
  state.position.slice(0, 0, 30).select(-1, 2).add_(M_PI / 2);  // on their sides
  state.position.slice(0, 0, 30).select(-1, 1).add_(0.3);
  const Tensor u = 10 * random({count, 3});
  for (const double mu : {0.0, 0.5}) {
    const CompliantBlock body = block(1e4, 0.02, 0.01, mu);
    const CompliantSolution solution = step(state, u, body);
    EXPECT_TRUE(everywhere(solution.status == 0));
    const Problem dual = dual_problem(state, u, body);
    const SolveResult result = lcp::solve(dual.M, dual.q);
    EXPECT_TRUE(everywhere(result.status == 0));
    const CompliantStep exact = read_dual(state, u, result.z, body);
    EXPECT_LE(largest(solution.step.next.velocity - exact.next.velocity), 1e-8);
    EXPECT_LE(largest(solution.step.gamma - exact.gamma), 1e-8);
    const Tensor touching = (exact.gamma.unflatten(-1, {4, 3}).select(-1, 2) > 1e-6).sum(-1);
    for (const int corners : {0, 1, 2}) EXPECT_TRUE((touching == corners).any().item<bool>()) << corners;
  }
}

TEST_F(CompliantTest, ABlockThatRestsSharesItsWeight) {
  const CompliantBlock body = block();
  const auto end = simulate({numbers({0, 0.2, 0}), numbers({0, 0, 0})}, numbers({3, 0, 0}).expand({300, 3}), body)
                       .step;  // sticks: less than mu m g
  const Tensor gamma = end.gamma[-1].view({4, 3});
  const double weight = 2 * 9.81 * 0.01, tilt = 3 * 0.01 * 0.2 / 1;  // the push at half its height
  EXPECT_NEAR(gamma[0][2].item<double>(), weight / 2 - tilt, 1e-4);
  EXPECT_NEAR(gamma[1][2].item<double>(), weight / 2 + tilt, 1e-4);
  EXPECT_NEAR((gamma[0][0] + gamma[1][0]).item<double>(), -3 * 0.01, 1e-6);
  EXPECT_EQ(largest(gamma.slice(0, 2)), 0);
  EXPECT_LT(std::abs(end.next.velocity[-1][0].item<double>()), 1e-3);
}

// For a given time step, stiffer ground is nearer to rigid ground, up to the effect of hovering.
TEST_F(CompliantTest, StiffGroundIsNearlyRigid) {
  const CompliantState still{numbers({0, 0, 0}), numbers({0, 0, 0})};
  const auto off = [&](double stiffness) {
    const RegularizationOptions sharp{.sigma = 1 / stiffness, .beta = 0};
    const CompliantParticle body = particle(stiffness, 0, 0.01, 0.5, sharp);
    const Tensor push = numbers({2, 0, 0});
    return largest(step(still, push, body).step.next.velocity - rigid_step(still, push, body).next.velocity);
  };
  for (double stiffness = 1e5; stiffness < 1e9; stiffness *= 10) {
    EXPECT_NEAR(off(10 * stiffness) / off(stiffness), 0.1, 0.02) << stiffness;
  }
  const CompliantState flat{numbers({0, 0.2, 0}), numbers({0, 0, 0})};
  const auto block_off = [&](double stiffness) {
    const RegularizationOptions sharp{.sigma = 1 / stiffness, .beta = 0};
    const CompliantBlock body = block(stiffness, 0, 0.01, 0.5, sharp);
    const Tensor push = numbers({3, 0, 0});
    const Problem rigid = rigid_problem(flat, push, body);
    const SolveResult result = lcp::solve(rigid.M, rigid.q);
    EXPECT_EQ(result.status.item<int>(), 0);
    return largest(step(flat, push, body).step.next.velocity - read_rigid(flat, push, result.z, body).next.velocity);
  };
  for (double stiffness = 1e5; stiffness < 1e8; stiffness *= 10) {
    EXPECT_NEAR(block_off(10 * stiffness) / block_off(stiffness), 0.1, 0.03) << stiffness;
  }
}

TEST_F(CompliantTest, DifferentiatesARolloutInStateInputsAndParameters) {
  const Tensor u = 3 * random({6, 2, 3});
  const testing::Inputs particle_inputs = {random({2, 3}) * 1e-3, random({2, 3}) * 0.3, u,
                                           numbers({1.0, 1.5}),   numbers({9.81}),      numbers({0.3, 0.6}),
                                           numbers({50, 80}),     numbers({0.02})};
  const auto of_particle = [](const testing::Inputs& x) {
    const CompliantParticle body{x[3], 0.01, x[4], {x[5], 100 * x[6], x[7]}};
    const auto end = simulate({x[0], x[1]}, x[2], body, exact_solve()).step;
    return torch::cat({end.next.position, end.next.velocity, end.gamma}, -1);
  };
  EXPECT_LE(testing::gradient_error(of_particle, particle_inputs), 1e-6);
  const testing::Inputs block_inputs = {random({2, 3}) * 1e-3 + numbers({0, 0.2, 0}),
                                        random({2, 3}) * 0.1,
                                        u,
                                        numbers({2.0}),
                                        numbers({9.81}),
                                        numbers({0.3, 0.6}),
                                        numbers({50, 80}),
                                        numbers({0.02}),
                                        numbers({1.0, 1.2}),
                                        numbers({0.4})};
  const auto of_block = [](const testing::Inputs& x) {
    const CompliantBlock body{x[3], x[8], x[9], 0.01, x[4], {x[5], 100 * x[6], x[7]}};
    const auto end = simulate({x[0], x[1]}, x[2], body, exact_solve()).step;
    return torch::cat({end.next.position, end.next.velocity, end.gamma}, -1);
  };
  EXPECT_LE(testing::gradient_error(of_block, block_inputs), 2e-6);
}

TEST_F(CompliantTest, AFailingElementLeavesTheOthersAlone) {
  const CompliantParticle body = particle();
  CompliantState state = states(3);
  state.velocity[1][0] = kNaN;
  Tensor u = random({5, 3, 3});
  u[2][2][0] = std::numeric_limits<double>::infinity();
  const CompliantSolution rollout = simulate(state, u, body);
  const Tensor failed = rollout.status != 0;
  EXPECT_TRUE(torch::equal(failed, torch::tensor({{0, 1, 0}, {0, 1, 0}, {0, 1, 1}, {0, 1, 1}, {0, 1, 1}}) == 1));
  EXPECT_TRUE(torch::equal(rollout.step.next.velocity.isnan().all(-1), failed));
  const auto alone = simulate({state.position[0], state.velocity[0]}, u.select(1, 0), body).step;
  EXPECT_TRUE(torch::equal(rollout.step.gamma.select(1, 0), alone.gamma));
  const auto certificate = certify_rollout(state, u, body, rollout);
  EXPECT_TRUE(torch::equal(certificate.unsolved, torch::tensor({0, 5, 3})));
  EXPECT_TRUE(torch::equal(certificate.kinked, torch::tensor({0, 0, 0})));
}

TEST_F(CompliantTest, SaysWhereItIsKinked) {
  // The gap closes exactly, so that y = 0, which is on the boundary of the regions.
  const CompliantParticle body = particle(1e5, 0, 0.5, 0.5);
  const CompliantState state{numbers({0, 0, 1}), numbers({0, 0, 0.5 * 9.81 - 2})};
  const Tensor u = torch::zeros({1, 3}, torch::kDouble);
  const CompliantSolution rollout = simulate(state, u, body);
  EXPECT_EQ(certify_rollout(state, u, body, rollout).kinked.item<int>(), 1);
}

TEST_F(CompliantTest, RefusesWhatIsOutOfRange) {
  EXPECT_EQ(testing::error_of([] { CompliantGround::of(0.5, 0, 0); }), "stiffness must be > 0; got 0");
  EXPECT_EQ(testing::error_of([] { particle(1, 0, -1); }), "dt must be > 0; got -1");
  const CompliantState state{numbers({0, 0, 0}), numbers({0, 0, 0})};
  EXPECT_EQ(testing::error_of([&] {
              simulate(state, numbers({0, 0, 0}), particle());
            }),
            "u must be [steps, ..., 3]; got [3]");
}

}  // namespace lcp::physics::compliant_test
