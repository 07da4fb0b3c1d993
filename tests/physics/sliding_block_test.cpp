#include "lcp/physics/sliding_block.h"

#include <gtest/gtest.h>
#include <torch/autograd.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "lcp/directional_derivative.h"
#include "lcp/status.h"
#include "support/finite_differences.h"
#include "support/tensors.h"

namespace lcp::physics::sliding_block_test {

using testing::count;
using testing::everywhere;
using testing::Inputs;
using testing::largest;
using testing::number;
using testing::numbers;
using Formulation = SlidingBlockFormulation;
using torch::Tensor;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kGravity = 9.81;

Tensor stacked(const SlidingBlockStep& step) {
  return torch::stack({step.v_next, step.lambda_plus, step.lambda_minus, step.gamma});
}

// The velocities that the steps of a rollout began with.
Tensor starts(const Tensor& v, const Tensor& v_next) { return torch::cat({v.unsqueeze(0), v_next.slice(0, 0, -1)}); }

SolveOptions with_method(const std::string& method) {
  SolveOptions options;
  options.method = method;
  return options;
}

class SlidingBlockTest : public ::testing::Test {
 protected:
  void SetUp() override { torch::manual_seed(5); }

  // Numbers without rounding: F = 4 N, dt mu g = 2 m/s.
  const SlidingBlock round_ = SlidingBlock::of(1, 0.5, 0.5, 8);
};

TEST_F(SlidingBlockTest, GoesForwardUnderFrictionThatNeverPushes) {
  for (const std::string method : {"auto", "lemke"}) {
    std::int64_t sticking = 0;
    for (const double dt : {1.0, 0.1, 0.01}) {
      const SlidingBlock block = SlidingBlock::of(1, dt, 0.3, kGravity);
      Tensor u = torch::rand({200, 100}, torch::kDouble) * 2 * 0.3 * kGravity;
      u.masked_fill_(torch::rand_like(u) < 0.3, 0);
      const Tensor v = torch::rand(100, torch::kDouble) * dt;
      const auto [step, z, residual, status] = simulate(v, u, block, Formulation::kForward, with_method(method));
      EXPECT_TRUE(everywhere(status == 0));
      EXPECT_LE(largest(residual), 1e-12);
      EXPECT_GE(step.lambda_minus.min().item<double>(), -1e-12);
      EXPECT_LE(largest(step.v_next - exact_step(starts(v, step.v_next), u, block).v_next), 1e-12);
      EXPECT_EQ(largest(step.lambda_plus), 0);
      sticking += count(step.v_next == 0);
    }
    EXPECT_GT(sticking, 10000);
  }
}

TEST_F(SlidingBlockTest, GluesABlockThatIsPulledBackIfItKnowsForwardMotionOnly) {
  const auto glued = step(number(0), number(-5), SlidingBlock::of(1, 0.1, 0.3, kGravity), Formulation::kForward).step;
  EXPECT_EQ(glued.v_next.item<double>(), 0);
  EXPECT_NEAR(glued.lambda_minus.item<double>(), -5, 1e-12);
}

TEST_F(SlidingBlockTest, SplitsTheVelocityAndInventsOneForceInTheDirectFormulation) {
  for (const double dt : {1.0, 0.1, 0.01, 0.001}) {
    const double mass = 1.5, limit = 0.3 * mass * kGravity, c = dt / mass;
    const SlidingBlock block = SlidingBlock::of(mass, dt, 0.3, kGravity);
    const Tensor u = torch::randn({300, 100}, torch::kDouble) * 1.3 * limit;
    const Tensor v0 = torch::randn(100, torch::kDouble) * dt;
    for (const std::string method : {"auto", "lemke"}) {
      const auto [step, z, residual, status] = simulate(v0, u, block, Formulation::kDirect, with_method(method));
      const Tensor v = starts(v0, step.v_next);
      EXPECT_TRUE(everywhere(status == 0));
      EXPECT_LE(largest(residual), 1e-10);
      EXPECT_EQ(largest(z.prod(-1)), 0);
      EXPECT_TRUE(torch::equal(step.gamma, step.v_next.abs()));
      EXPECT_LE(largest(step.v_next - exact_step(v, u, block).v_next), 1e-12);
      EXPECT_TRUE(torch::equal(step.v_next == 0, exact_step(v, u, block).v_next == 0));
      const Tensor stopping = v / c + u;
      EXPECT_LE(largest(step.lambda_minus - stopping.clamp_max(limit)), 1e-11);
      EXPECT_LE(largest(step.lambda_plus - (-stopping).clamp_max(limit)), 1e-11);
      EXPECT_TRUE(everywhere((step.lambda_plus < 0) ^ (step.lambda_minus < 0)));
      EXPECT_TRUE(everywhere((step.lambda_plus > 0) ^ (step.lambda_minus > 0)));
      EXPECT_LE(largest(2 * v + 2 * c * u + c * (step.lambda_plus - step.lambda_minus) - step.v_next), 1e-12);
      EXPECT_GT(count(step.v_next == 0), 5000);
      EXPECT_GT(count(v * step.v_next < 0), 1000);
    }
  }
}

TEST_F(SlidingBlockTest, IsExactInTheTraditionalAndTheMixedFormulation) {
  for (const auto formulation : {Formulation::kTraditional, Formulation::kMixed}) {
    for (const std::string method : {"auto", "lemke"}) {
      for (const auto& [mass, dt] : std::vector<std::pair<double, double>>{{1, 1}, {1, 0.1}, {2.5, 0.01}}) {
        const SlidingBlock block = SlidingBlock::of(mass, dt, 0.3, kGravity);
        const double limit = 0.3 * mass * kGravity;
        const Tensor u = torch::randn(30000, torch::kDouble) * 1.3 * limit;
        const Tensor v = torch::randn(30000, torch::kDouble) * dt * 3;
        const auto [step, z, residual, status] = physics::step(v, u, block, formulation, with_method(method));
        const SlidingBlockStep exact = exact_step(v, u, block);
        const Tensor net = step.lambda_plus - step.lambda_minus;
        EXPECT_TRUE(everywhere(status == 0));
        EXPECT_LE(largest(residual), 1e-12);
        EXPECT_LE(largest(step.v_next - exact.v_next), 1e-11);
        EXPECT_LE(largest(net - (exact.lambda_plus - exact.lambda_minus)), 1e-11);
        EXPECT_LE(largest(step.gamma - step.v_next.abs()), 1e-11);
        EXPECT_LE(largest(v + dt / mass * (u + net) - step.v_next), 1e-11);
        EXPECT_GE(z.min().item<double>(), 0);
        EXPECT_LE((step.lambda_plus + step.lambda_minus).max().item<double>(), limit * (1 + 1e-12));
        EXPECT_TRUE(torch::equal(step.v_next == 0, exact.v_next == 0));
        EXPECT_TRUE(torch::equal(step.gamma == 0, exact.gamma == 0));
        EXPECT_GT(count(exact.v_next == 0), 3000);
      }
    }
  }
}

TEST_F(SlidingBlockTest, ReducesTheMixedFormulationToTheTraditionalOne) {
  const SlidingBlock block = SlidingBlock::of(2.5, 0.1, 0.3, kGravity);
  const Tensor v = torch::randn(2000, torch::kDouble), u = torch::randn(2000, torch::kDouble) * 10;
  const MixedProblem mixed = mixed_problem(v, u, block);
  const double c = 0.1 / 2.5;
  EXPECT_EQ(mixed.A.item<double>(), 1);
  EXPECT_LE(largest(mixed.B - numbers({-c, c, 0})), 1e-17);
  EXPECT_TRUE(torch::equal(mixed.C, numbers({1, -1, 0}).unsqueeze(-1)));
  EXPECT_TRUE(torch::equal(mixed.M, torch::tensor({{0., 0., 1.}, {0., 0., 1.}, {-1., -1., 0.}}, torch::kDouble)));
  const Problem traditional = traditional_problem(v, u, block);
  EXPECT_LE(largest(mixed.M - mixed.C.matmul(mixed.B) - traditional.M), 1e-17);
  EXPECT_LE(largest(mixed.q - mixed.C.matmul(mixed.p.unsqueeze(-1)).squeeze(-1) - traditional.q), 1e-15);
  const Tensor exact = exact_step(v, u, block).v_next;
  EXPECT_LE(largest(step(v, u, block, Formulation::kMixed).step.v_next - exact), 1e-14);
}

TEST_F(SlidingBlockTest, DoesNotCopyASharedMatrix) {
  const Tensor v = torch::randn({7}, torch::kDouble);
  EXPECT_EQ(forward_problem(v, v, round_).M.sizes(), (std::vector<std::int64_t>{1, 1}));
  EXPECT_EQ(direct_problem(v, v, round_).M.sizes(), (std::vector<std::int64_t>{2, 2}));
  EXPECT_EQ(traditional_problem(v, v, round_).M.sizes(), (std::vector<std::int64_t>{3, 3}));
  EXPECT_EQ(mixed_problem(v, v, round_).M.sizes(), (std::vector<std::int64_t>{3, 3}));
}

TEST_F(SlidingBlockTest, RefusesImpossibleParameters) {
  EXPECT_THROW(SlidingBlock::of(0, 0.1, 0.3, kGravity), c10::Error);
  EXPECT_THROW(SlidingBlock::of(1, -0.1, 0.3, kGravity), c10::Error);
  EXPECT_THROW(SlidingBlock::of(1, 0.1, -0.3, kGravity), c10::Error);
  EXPECT_THROW(SlidingBlock::of(1, 0.1, 0.3, kNaN), c10::Error);
  EXPECT_THROW(simulate(number(1), torch::zeros({0}, torch::kDouble), round_, Formulation::kDirect), c10::Error);
  EXPECT_THROW(simulate(number(1), number(1), round_, Formulation::kDirect), c10::Error);
  EXPECT_NO_THROW(SlidingBlock::of(1, 0.1, 0, 0));
}

TEST_F(SlidingBlockTest, DifferentiatesTheClosedForm) {
  const auto exact = [](const Inputs& in) { return stacked(exact_step(in[0], in[1], {in[2], in[3], in[4], in[5]})); };
  const Tensor v = numbers({3, -4, 1, 0.5}), u = numbers({1, 0.3, -0.7, 2});
  EXPECT_LT(testing::gradient_error(exact, {v, u, number(1.3), number(0.5), number(0.5), number(8)}), 1e-6);
}

TEST_F(SlidingBlockTest, FindsTheOneSidedDerivativesAtTheEdgeOfSticking) {
  const Tensor v = number(2), u = number(0);
  for (const bool direct : {true, false}) {
    const auto problem_of = direct ? direct_problem : traditional_problem;
    const Problem problem = problem_of(v, u, round_);
    const Tensor z = step(v, u, round_, direct ? Formulation::kDirect : Formulation::kTraditional).z;
    for (const auto& [dv, expected] : std::vector<std::pair<double, double>>{{-1, 0}, {1, 1}}) {
      const Tensor dq = problem_of(v + dv, u, round_).q - problem.q;
      const auto derivative = directional_derivative(problem.M, problem.q, z, torch::zeros_like(problem.M), dq);
      ASSERT_EQ(derivative.status.item<int>(), 0);
      const Tensor dv_next = direct ? derivative.dz[0] - derivative.dz[1] : (derivative.dw[0] - derivative.dw[1]) / 2;
      EXPECT_EQ(dv_next.item<double>(), expected);
      const Tensor moved = exact_step(v + dv / 1024, u, round_).v_next;
      EXPECT_EQ(moved.item<double>() * 1024, expected);
    }
  }
}

// lambda = 0 by mu = 0, so that gamma >= |v_next| is all that the problem asks of it.
TEST_F(SlidingBlockTest, IsKinkedWithoutFrictionWhateverSlackVelocityIsFound) {
  for (const std::string method : {"auto", "lemke", "central_path"}) {
    const SlidingBlock block = SlidingBlock::of(1, 0.5, 0, 8);
    const Tensor v = numbers({1, -1, 0}), u = torch::zeros({1, 3}, torch::kDouble);
    const auto rollout = simulate(v, u, block, Formulation::kTraditional, with_method(method));
    EXPECT_TRUE(torch::equal(rollout.step.v_next[0], v));
    const auto certificate = certify_rollout(v, u, block, Formulation::kTraditional, rollout);
    EXPECT_TRUE(torch::equal(certificate.kinked, torch::tensor({1, 1, 1}))) << method;
  }
}

// Friction of 2 N within a cone of 4 N, split into 1 N and 3 N.
TEST_F(SlidingBlockTest, IsNotKinkedWithinTheConeHoweverTheForceIsSplit) {
  SolveOptions options;
  options.guess = torch::ones(3, torch::kDouble);
  const Tensor v = number(1), u = torch::zeros(1, torch::kDouble);
  const auto rollout = simulate(v, u, round_, Formulation::kMixed, options);
  ASSERT_TRUE(torch::equal(rollout.z[0], numbers({1, 3, 0})));
  const auto certificate = certify_rollout(v, u, round_, Formulation::kMixed, rollout);
  EXPECT_EQ(certificate.tied.item<int>(), 1);
  EXPECT_EQ(certificate.kinked.item<int>(), 0);
}

// The net force that would stop it is smooth there, but each of lambda_plus and lambda_minus is not.
TEST_F(SlidingBlockTest, ChoosesTheGradientOfTheForcesOfABlockAtRestByItsTies) {
  for (const auto formulation : {Formulation::kTraditional, Formulation::kMixed}) {
    for (const auto& [ties, slope] : std::vector<std::pair<std::string, double>>{{"inactive", 0}, {"active", -2}}) {
      SolveOptions options;
      options.ties = ties;
      const Tensor v = number(0).requires_grad_(), u = torch::zeros(1, torch::kDouble);
      const auto rollout = simulate(v, u, round_, formulation, options);
      const Tensor net = (rollout.step.lambda_plus - rollout.step.lambda_minus).sum();
      EXPECT_DOUBLE_EQ(torch::autograd::grad({net}, {v}, {}, true)[0].item<double>(), slope) << ties;
      EXPECT_EQ(torch::autograd::grad({rollout.step.v_next.sum()}, {v})[0].item<double>(), 0) << ties;
      const auto certificate = certify_rollout(v, u, round_, formulation, rollout);
      EXPECT_EQ(certificate.tied.item<int>(), 1);
      EXPECT_EQ(certificate.kinked.item<int>(), 0);
    }
  }
}

}  // namespace lcp::physics::sliding_block_test
