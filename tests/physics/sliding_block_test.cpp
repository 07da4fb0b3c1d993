#include "lcp/physics/sliding_block.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "support/finite_differences.h"

namespace lcp::physics {
namespace {

using testing::Inputs;
using torch::Tensor;

constexpr auto kFormulations = {SlidingBlockFormulation::kDirect, SlidingBlockFormulation::kTraditional};

class SlidingBlockTest : public ::testing::Test {
 protected:
  void SetUp() override { torch::manual_seed(5); }
  static Tensor number(double x) { return torch::tensor(x, torch::kDouble); }
};

TEST_F(SlidingBlockTest, AgreesWithExactCoulombFriction) {
  for (const auto formulation : kFormulations) {
    for (const double mass : {0.2, 1.0, 2.5}) {
      for (const double dt : {1.0, 0.1, 0.01, 0.001}) {
        for (const double mu : {0.0, 0.3, 1.1}) {
          const SlidingBlock block = SlidingBlock::of(mass, dt, mu, 9.81);
          const Tensor u = torch::randn(3000, torch::kDouble) * 2 * (mu + 0.1) * mass * 9.81;
          const Tensor v = torch::randn(3000, torch::kDouble) * 2 * (mu + 0.1) * dt * 9.81;
          const auto solution = step(v, u, block, formulation);
          const Tensor exact = exact_step(v, u, block).v_next;
          EXPECT_TRUE((solution.status == 0).all().item<bool>());
          EXPECT_LE((solution.step.v_next - exact).abs().max().item<double>(), 1e-11);
          EXPECT_TRUE(torch::equal(solution.step.v_next == 0, exact == 0));
          EXPECT_LE(solution.residual.max().item<double>(), 1e-9 * mass * 30 / std::min(dt, 1.0));
        }
      }
    }
  }
}

TEST_F(SlidingBlockTest, HasForcesThatExplainTheMotion) {
  const SlidingBlock block = SlidingBlock::of(2.5, 0.1, 0.3, 9.81);
  const Tensor v = torch::randn(5000, torch::kDouble);
  const Tensor u = torch::randn(5000, torch::kDouble) * 15;
  const double limit = 0.3 * 2.5 * 9.81;
  const auto traditional = step(v, u, block, SlidingBlockFormulation::kTraditional).step;
  const Tensor net = traditional.lambda_plus - traditional.lambda_minus;
  EXPECT_LT((v + 0.1 / 2.5 * (u + net) - traditional.v_next).abs().max().item<double>(), 1e-12);
  EXPECT_LE((traditional.lambda_plus + traditional.lambda_minus).max().item<double>(), limit * (1 + 1e-12));
  EXPECT_LT((traditional.gamma - traditional.v_next.abs()).abs().max().item<double>(), 1e-12);

  const auto direct = step(v, u, block, SlidingBlockFormulation::kDirect).step;
  const Tensor stopping = 25 * v + u;
  EXPECT_LT((direct.lambda_minus - stopping.clamp_max(limit)).abs().max().item<double>(), 1e-12);
  EXPECT_LT((direct.lambda_plus - (-stopping).clamp_max(limit)).abs().max().item<double>(), 1e-12);
  // Exactly one of the two is fictitious, below 0.
  EXPECT_TRUE(((direct.lambda_plus < 0) ^ (direct.lambda_minus < 0)).all().item<bool>());
  // The sum of both rows [Notes, eq. 2].
  EXPECT_LT((2 * v + 2 * 0.04 * u + 0.04 * (direct.lambda_plus - direct.lambda_minus) - direct.v_next)
                .abs()
                .max()
                .item<double>(),
            1e-12);
}

TEST_F(SlidingBlockTest, SplitsDirectVelocitiesExactly) {
  const SlidingBlock block = SlidingBlock::of(1, 0.1, 0.3, 9.81);
  const Tensor v = torch::randn(30000, torch::kDouble);
  const auto solution = step(v, torch::zeros_like(v), block, SlidingBlockFormulation::kDirect);
  // gamma is the sum of the two components, |v_next| their difference: equal only where one of them is 0.
  EXPECT_TRUE(torch::equal(solution.step.gamma, solution.step.v_next.abs()));
}

TEST_F(SlidingBlockTest, TakesParametersOfEachElement) {
  const SlidingBlock block{torch::rand({4, 1}, torch::kDouble) + 0.5, number(0.1), torch::rand({3}, torch::kDouble),
                           number(9.81)};
  const Tensor v = torch::randn({4, 3}, torch::kDouble);
  const Tensor u = torch::randn({4, 3}, torch::kDouble) * 5;
  for (const auto formulation : kFormulations) {
    const auto solution = step(v, u, block, formulation);
    EXPECT_LT((solution.step.v_next - exact_step(v, u, block).v_next).abs().max().item<double>(), 1e-12);
  }
}

TEST_F(SlidingBlockTest, DoesNotCopyASharedMatrix) {
  const SlidingBlock block = SlidingBlock::of(1, 0.1, 0.3, 9.81);
  const Tensor v = torch::randn({7}, torch::kDouble);
  EXPECT_EQ(direct_problem(v, v, block).M.sizes(), (std::vector<std::int64_t>{2, 2}));
  EXPECT_EQ(traditional_problem(v, v, block).M.sizes(), (std::vector<std::int64_t>{3, 3}));
}

TEST_F(SlidingBlockTest, KeepsThePrecisionOfItsState) {
  const SlidingBlock block = SlidingBlock::of(1, 0.1, 0.3, 9.81);
  for (const auto& shape : {std::vector<std::int64_t>{}, std::vector<std::int64_t>{9}}) {
    const Tensor v = torch::randn(shape, torch::kFloat);
    for (const auto formulation : kFormulations) {
      EXPECT_EQ(step(v, v, block, formulation).step.v_next.scalar_type(), torch::kFloat);
      EXPECT_EQ(step(v, v.to(torch::kDouble), block, formulation).step.v_next.scalar_type(), torch::kFloat);
    }
    EXPECT_EQ(exact_step(v, v, block).v_next.scalar_type(), torch::kFloat);
  }
}

TEST_F(SlidingBlockTest, DifferentiatesARolloutInStateInputAndParameters) {
  const Tensor v = torch::tensor({1.0, -0.6, 0.05}, torch::kDouble);
  const Tensor u = torch::tensor({{2., -4., 0.5}, {-9., 1., 0.5}, {6., 8., -1.}}, torch::kDouble);
  for (const auto formulation : kFormulations) {
    const auto rollout = [&](const Inputs& in) {
      const SlidingBlock block{in[2], in[3], in[4], in[5]};
      return simulate(in[0], in[1], block, formulation).step.v_next;
    };
    EXPECT_LT(testing::gradient_error(rollout, {v, u, number(1.3), number(0.1), number(0.3), number(9.81)}), 1e-6);
  }
}

TEST_F(SlidingBlockTest, StepsATrajectoryAsSingleSteps) {
  const SlidingBlock block = SlidingBlock::of(1, 0.1, 0.3, 9.81);
  const Tensor v = torch::randn({6}, torch::kDouble);
  const Tensor u = torch::randn({20, 6}, torch::kDouble) * 5;
  const auto trajectory = simulate(v, u, block, SlidingBlockFormulation::kTraditional);
  Tensor now = v;
  for (int k = 0; k < 20; ++k) {
    now = step(now, u[k], block, SlidingBlockFormulation::kTraditional).step.v_next;
    EXPECT_TRUE(torch::equal(trajectory.step.v_next[k], now));
  }
}

TEST_F(SlidingBlockTest, RefusesImpossibleParameters) {
  EXPECT_THROW(SlidingBlock::of(0, 0.1, 0.3, 9.81), c10::Error);
  EXPECT_THROW(SlidingBlock::of(1, -0.1, 0.3, 9.81), c10::Error);
  EXPECT_THROW(SlidingBlock::of(1, 0.1, -0.3, 9.81), c10::Error);
  EXPECT_THROW(SlidingBlock::of(1, 0.1, 0.3, NAN), c10::Error);
  EXPECT_THROW(simulate(number(1), torch::zeros({0}, torch::kDouble), SlidingBlock::of(1, 0.1, 0.3, 9.81),
                        SlidingBlockFormulation::kDirect),
               c10::Error);
}

}  // namespace
}  // namespace lcp::physics
