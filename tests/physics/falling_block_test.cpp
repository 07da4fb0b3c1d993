#include "lcp/physics/falling_block.h"

#include <gtest/gtest.h>
#include <torch/autograd.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "lcp/directional_derivative.h"
#include "support/finite_differences.h"
#include "support/tensors.h"

namespace lcp::physics::falling_block_test {

using testing::everywhere;
using testing::Inputs;
using testing::largest;
using testing::number;
using testing::numbers;
using torch::Tensor;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

Tensor stacked(const FallingBlockStep& step) { return torch::stack({step.x_next, step.v_next, step.lambda}); }

// All a rollout computes of x, v, mass, dt and gravity.
Tensor rollout_of(const Inputs& in, std::int64_t steps, const SolveOptions& options = {}) {
  return stacked(simulate(in[0], in[1], steps, {in[2], in[3], in[4]}, options).step);
}

class FallingBlockTest : public ::testing::Test {
 protected:
  void SetUp() override { torch::manual_seed(11); }

  // Numbers without rounding: dt g = 4 m/s, g dt^2 = 2 m.
  const FallingBlock round_ = FallingBlock::of(1, 0.5, 8);
};

TEST_F(FallingBlockTest, FallsFromOneMetreAsMeasured) {
  const auto fall = simulate(number(1), number(0), 200, FallingBlock::of(1, 0.01, 9.81));
  const auto& step = fall.step;
  const auto x = [&](int k) { return step.x_next[k - 1].item<double>(); };
  const auto v = [&](int k) { return step.v_next[k - 1].item<double>(); };
  const auto lambda = [&](int k) { return step.lambda[k - 1].item<double>(); };
  EXPECT_TRUE(everywhere(fall.status == 0));
  EXPECT_LE(largest(fall.residual), 1e-11);
  EXPECT_TRUE(everywhere(step.lambda.slice(0, 0, 44) == 0));
  EXPECT_NEAR(x(44), 0.02881, 1e-12);
  EXPECT_NEAR(v(44), -4.3164, 1e-11);
  EXPECT_EQ(x(45), 0);
  EXPECT_NEAR(v(45), -2.881, 1e-11);
  EXPECT_NEAR(lambda(45), 153.35, 1e-8);
  EXPECT_NEAR(lambda(46), 297.91, 1e-8);
  EXPECT_NEAR(v(46), 0, 1e-14);
  EXPECT_LE(largest(step.lambda.slice(0, 46) - 9.81), 1e-9);
  EXPECT_EQ(step.x_next.min().item<double>(), 0);
  EXPECT_NEAR(0.01 * step.lambda.sum().item<double>(), 9.81 * 2 + v(200), 1e-11);
}

TEST_F(FallingBlockTest, AgreesWithTheClosedForm) {
  for (const std::string method : {"auto", "lemke"}) {
    SolveOptions options;
    options.method = method;
    for (const double mass : {0.2, 1.0, 2.5}) {
      for (const double dt : {0.5, 0.1, 0.01}) {
        const FallingBlock block = FallingBlock::of(mass, dt, 9.81);
        const Tensor x = torch::rand(3000, torch::kDouble) * 5 * dt;
        const Tensor v = torch::randn(3000, torch::kDouble) * 5;
        const auto solution = step(x, v, block, options);
        const FallingBlockStep exact = exact_step(x, v, block);
        EXPECT_TRUE(everywhere(solution.status == 0));
        EXPECT_GE(solution.step.x_next.min().item<double>(), 0);
        EXPECT_LE(largest(solution.step.x_next - exact.x_next), 1e-12);
        EXPECT_LE(largest(solution.step.lambda - exact.lambda), 1e-12 * largest(exact.lambda));
        EXPECT_LE(largest(solution.step.v_next - exact.v_next), 1e-12 / dt);
        EXPECT_TRUE(torch::equal(solution.step.x_next > 0, exact.x_next > 0));
        EXPECT_TRUE(everywhere((solution.step.x_next == 0) | (solution.step.lambda == 0)));
        EXPECT_LE(largest(v + dt * (solution.step.lambda / mass - 9.81) - solution.step.v_next), 1e-12 / dt);
      }
    }
  }
}

TEST_F(FallingBlockTest, FollowsTheParabolaOfTheStepsInFlight) {
  const Tensor x0 = numbers({3, 1}), v0 = numbers({0, 4});
  for (const double dt : {0.1, 0.01, 0.001}) {
    const auto flight = simulate(x0, v0, 60, FallingBlock::of(0.7, dt, 2)).step;
    const Tensor k = torch::arange(1, 61, torch::kDouble).unsqueeze(-1);
    const Tensor x = x0 + k * dt * v0 - 2 * dt * dt * k * (k + 1) / 2;
    const Tensor flies = (x > 0).to(torch::kDouble).cumprod(0) > 0;
    EXPECT_GT(flies.sum().item<int>(), 50);
    EXPECT_LE(largest((flight.x_next - x).masked_select(flies)), 1e-12);
    EXPECT_LE(largest((flight.v_next - (v0 - 2 * dt * k)).masked_select(flies)), 1e-12);
    EXPECT_EQ(largest(flight.lambda.masked_select(flies)), 0);
  }
}

TEST_F(FallingBlockTest, TakesTwoStepsToComeToRest) {
  const double mass = 2.5, dt = 0.05, g = 9.81;
  const auto impact = simulate(numbers({0.1, 0.4}), numbers({-5, -20}), 5, FallingBlock::of(mass, dt, g)).step;
  EXPECT_LE(largest(impact.x_next), 0);
  EXPECT_LE(largest(impact.v_next[0] + numbers({0.1, 0.4}) / dt), 1e-13);
  EXPECT_LE(largest(impact.lambda[1] - mass * (g + numbers({0.1, 0.4}) / (dt * dt))), 1e-10);
  EXPECT_LE(largest(impact.v_next.slice(0, 1)), 1e-13);
  EXPECT_LE(largest(impact.lambda.slice(0, 2) - mass * g), 1e-9);
}

TEST_F(FallingBlockTest, FallsInSinglePrecisionHoweverShortTheStep) {
  for (const double dt : {1e-2, 1e-3, 1e-4}) {
    const auto flight = simulate(torch::tensor(10.0F), torch::tensor(0.0F), 100, FallingBlock::of(1, dt, 9.81)).step;
    EXPECT_NEAR(flight.v_next[-1].item<double>(), -981 * dt, 9.81 * dt) << dt;
  }
}

TEST_F(FallingBlockTest, TakesParametersOfEachElement) {
  const Tensor mass = torch::rand({4, 1}, torch::kDouble) + 0.5;
  const Tensor dt = numbers({0.5, 0.1, 0.02});
  const Tensor gravity = torch::rand({2, 1, 1}, torch::kDouble) * 9;
  const Tensor x = torch::rand({3}, torch::kDouble);
  const Tensor v = torch::randn({4, 1}, torch::kDouble) * 3;
  const auto batch = simulate(x, v, 6, {mass, dt, gravity});
  ASSERT_EQ(batch.step.lambda.sizes(), (std::vector<std::int64_t>{6, 2, 4, 3}));
  const RolloutCertificate certificate = certify_rollout(x, v, {mass, dt, gravity}, batch);
  EXPECT_EQ(certificate.tied.sizes(), (std::vector<std::int64_t>{2, 4, 3}));
  for (int i = 0; i < 2; ++i) {
    for (int j = 0; j < 4; ++j) {
      for (int k = 0; k < 3; ++k) {
        const auto one = simulate(x[k], v[j][0], 6, {mass[j][0], dt[k], gravity[i][0][0]});
        EXPECT_TRUE(torch::equal(stacked(one.step), stacked(batch.step).index({"...", i, j, k})));
        EXPECT_TRUE(torch::equal(one.residual, batch.residual.index({"...", i, j, k})));
      }
    }
  }
}

TEST_F(FallingBlockTest, KeepsThePrecisionOfItsState) {
  const FallingBlock block = FallingBlock::of(1.5, 0.1, 9.81);
  for (const auto& shape : {std::vector<std::int64_t>{}, std::vector<std::int64_t>{9}}) {
    const Tensor x = torch::rand(shape, torch::kFloat), v = torch::randn(shape, torch::kFloat);
    const FallingBlockStep expected = exact_step(x.to(torch::kDouble), v.to(torch::kDouble), block);
    for (const Tensor& speed : {v, v.to(torch::kDouble)}) {
      const auto one = step(x, speed, block);
      const auto many = simulate(x, speed, 2, block);
      for (const Tensor& y : {stacked(one.step), one.z, one.residual, stacked(many.step), many.z, many.residual,
                              stacked(exact_step(x, speed, block))}) {
        EXPECT_EQ(y.scalar_type(), torch::kFloat);
      }
      EXPECT_LE(largest(one.step.x_next - expected.x_next), 1e-6);
      EXPECT_LE(largest(one.step.v_next - expected.v_next), 1e-5);
      EXPECT_LE(largest(one.step.lambda - expected.lambda), 1e-3);
    }
  }
}

TEST_F(FallingBlockTest, AcceptsAnEmptyBatch) {
  const Tensor none = torch::zeros({2, 0}, torch::kDouble);
  const auto rollout = simulate(none, none, 3, round_);
  EXPECT_EQ(rollout.step.x_next.sizes(), (std::vector<std::int64_t>{3, 2, 0}));
  EXPECT_EQ(rollout.z.sizes(), (std::vector<std::int64_t>{3, 2, 0, 1}));
  EXPECT_EQ(certify_rollout(none, none, round_, rollout).kinked.sizes(), none.sizes());
  EXPECT_EQ(step(none, none, round_).status.sizes(), none.sizes());
}

TEST_F(FallingBlockTest, LeavesTheNeighboursOfABadElementAlone) {
  const Tensor mass = torch::rand(5, torch::kDouble) + 0.5;
  const auto run = [&](double bad) {
    Tensor x = torch::linspace(0, 1, 5, torch::kDouble);
    x[2] = bad;
    const Inputs leaves = {x.requires_grad_(), torch::linspace(-3, 2, 5, torch::kDouble).requires_grad_(),
                           mass.clone().requires_grad_(), torch::full(5, 0.1, torch::kDouble).requires_grad_(),
                           torch::full(5, 9.81, torch::kDouble).requires_grad_()};
    const auto rollout = simulate(leaves[0], leaves[1], 6, {leaves[2], leaves[3], leaves[4]});
    EXPECT_EQ(everywhere(rollout.status == 0), bad == 0.5);
    Inputs all_of_it = {stacked(rollout.step), rollout.z.squeeze(-1), rollout.residual};
    const Tensor kept = torch::where(rollout.status == 0, stacked(rollout.step), 0);
    for (const Tensor& g : torch::autograd::grad({kept.sum()}, leaves)) all_of_it.push_back(g);
    return all_of_it;
  };
  const Tensor others = torch::tensor({0, 1, 3, 4});
  const Inputs good = run(0.5);
  for (const double bad : {kNaN, std::numeric_limits<double>::infinity()}) {
    const Inputs beside = run(bad);
    for (std::size_t i = 0; i < good.size(); ++i) {
      EXPECT_TRUE(torch::equal(good[i].index_select(-1, others), beside[i].index_select(-1, others))) << i;
    }
    EXPECT_TRUE(everywhere(beside[0].select(-1, 2).isnan()));
  }
}

TEST_F(FallingBlockTest, KeepsTheGradientOfSharedParametersBesideAMaskedElement) {
  const auto gradients = [](const Tensor& x) {
    const Inputs leaves = {number(1.3).requires_grad_(), number(0.1).requires_grad_(), number(9.81).requires_grad_()};
    const auto rollout = simulate(x, torch::zeros_like(x), 4, {leaves[0], leaves[1], leaves[2]});
    const Tensor kept = torch::where(rollout.status == 0, rollout.step.x_next + rollout.step.lambda, 0);
    return torch::stack(torch::autograd::grad({kept.sum()}, leaves));
  };
  EXPECT_LE(largest(gradients(numbers({0.2, kNaN, 2})) - gradients(numbers({0.2, 2}))), 1e-10);
}

TEST_F(FallingBlockTest, DoesNotDependOnHowTheBatchIsSplit) {
  const FallingBlock block = FallingBlock::of(1.3, 0.1, 9.81);
  for (const auto dtype : {torch::kFloat, torch::kDouble}) {
    const Tensor x = torch::rand(257, dtype), v = torch::randn(257, dtype) * 3;
    const auto whole = simulate(x, v, 5, block);
    for (const auto& [from, to] : std::vector<std::pair<int, int>>{{0, 1}, {1, 100}, {100, 257}}) {
      const auto part = simulate(x.slice(0, from, to), v.slice(0, from, to), 5, block);
      EXPECT_TRUE(torch::equal(stacked(part.step), stacked(whole.step).slice(-1, from, to)));
      EXPECT_TRUE(torch::equal(part.residual, whole.residual.slice(-1, from, to)));
    }
  }
}

TEST_F(FallingBlockTest, StepsATrajectoryAsSingleSteps) {
  Tensor x = torch::rand(6, torch::kDouble), v = torch::randn(6, torch::kDouble);
  const FallingBlock block = FallingBlock::of(1.3, 0.1, 9.81);
  const auto trajectory = simulate(x, v, 10, block);
  for (int k = 0; k < 10; ++k) {
    const auto now = step(x, v, block);
    EXPECT_TRUE(torch::equal(stacked(trajectory.step).select(1, k), stacked(now.step)));
    EXPECT_TRUE(torch::equal(trajectory.residual[k], now.residual));
    x = now.step.x_next;
    v = now.step.v_next;
  }
}

// In flight all the time; an impact in the third step; at rest; up from the ground and down again.
TEST_F(FallingBlockTest, DifferentiatesARolloutInStateAndParameters) {
  const Tensor x = numbers({3, 0.4, 0, 0}), v = numbers({1, -0.5, 0, 1.2});
  const auto rollout = [](const Inputs& in) { return rollout_of(in, 5); };
  const Inputs shared = {x, v, number(1.3), number(0.1), number(9.81)};
  const Tensor lambda = rollout(shared)[2];
  EXPECT_TRUE(torch::equal((lambda > 0).sum(0), torch::tensor({0, 3, 5, 4})));
  EXPECT_LT(testing::gradient_error(rollout, shared), 1e-6);
  const Tensor spread = torch::linspace(0.9, 1.1, 4, torch::kDouble);
  EXPECT_LT(testing::gradient_error(rollout, {x, v, 1.3 * spread, 0.1 * spread, 9.81 * spread}), 1e-6);
}

TEST_F(FallingBlockTest, DifferentiatesTheClosedForm) {
  const auto exact = [](const Inputs& in) {
    return stacked(exact_step(in[0], in[1], FallingBlock{in[2], in[3], in[4]}));
  };
  EXPECT_LT(
      testing::gradient_error(exact, {numbers({3, 0.1, 0}), numbers({1, -2, 0}), number(1.3), number(0.5), number(2)}),
      1e-6);
}

TEST_F(FallingBlockTest, DifferentiatesOnBothSidesOfFirstTouch) {
  const auto one = [](const Inputs& in) { return rollout_of(in, 1); };
  for (const double x : {1.99999, 2.00001}) {
    EXPECT_LT(testing::gradient_error(one, {number(x), number(0), number(1), number(0.5), number(8)}), 1e-6) << x;
  }
}

TEST_F(FallingBlockTest, DifferentiatesTwice) {
  const auto rollout = [](const Inputs& in) { return rollout_of(in, 3); };
  EXPECT_LT(testing::second_gradient_error(
                rollout, {numbers({5, 1.5, 0}), numbers({1, -0.5, 0}), number(1.3), number(0.5), number(1.7)}),
            1e-6);
}

// Lets go of the block where it arrives at the plane with exactly no force.
TEST_F(FallingBlockTest, HasTheDeclaredGradientAtFirstTouch) {
  for (const auto& [ties, slope] :
       std::vector<std::pair<std::string, double>>{{"inactive", 0}, {"active", 1}, {"midpoint", 0.5}}) {
    SolveOptions options;
    options.ties = ties;
    const Tensor x = number(2).requires_grad_();
    const auto solution = step(x, number(0), round_, options);
    EXPECT_EQ(solution.step.x_next.item<double>(), 0);
    EXPECT_EQ(torch::autograd::grad({solution.step.x_next}, {x}, {}, true)[0].item<double>(), slope);
    EXPECT_EQ(torch::autograd::grad({solution.step.v_next}, {x}, {}, true)[0].item<double>(), (slope - 1) / 0.5);
    EXPECT_EQ(torch::autograd::grad({solution.step.lambda}, {x})[0].item<double>(), (slope - 1) / 0.25);
  }
  const Problem problem = direct_problem(number(2), number(0), round_);
  for (const double dx : {-1.0, 1.0}) {
    const Problem later = direct_problem(number(2 + dx), number(0), round_);
    const auto derivative = directional_derivative(problem.M, problem.q, torch::zeros(1, torch::kDouble),
                                                   torch::zeros_like(problem.M), later.q - problem.q);
    const auto moved = step(number(2 + dx / 1024), number(0), round_).step;
    EXPECT_EQ(derivative.dz.item<double>(), moved.x_next.item<double>() * 1024);
    EXPECT_EQ(derivative.dw.item<double>(), moved.lambda.item<double>() * 1024);
  }
}

TEST_F(FallingBlockTest, HasAnInformativeGradientAtRestWithKappa) {
  for (const double kappa : {0.0, 0.1}) {
    SolveOptions options;
    options.kappa = kappa;
    const Tensor x = number(1).requires_grad_();
    const auto solution = step(x, number(0), round_, options);
    EXPECT_EQ(solution.step.x_next.item<double>(), 0);
    const double slope = torch::autograd::grad({solution.step.x_next}, {x})[0].item<double>();
    // The root of z (4 z + q) = kappa, and dq / dx = -4.
    const double q = 4;
    EXPECT_NEAR(slope, kappa == 0 ? 0 : (1 - q / std::sqrt(q * q + 16 * kappa)) / 2, 1e-12);
  }
}

// The free height is exactly 0 in the first step of the first block and in the second of the third; the second block
// stays in flight, the fourth hits the plane at once.
TEST_F(FallingBlockTest, CountsUnsolvedTiedAndKinkedSteps) {
  const Tensor x = numbers({2, 100, 6, 1, kNaN}), v = torch::zeros_like(x);
  const auto rollout = simulate(x, v, 4, round_);
  const RolloutCertificate certificate = certify_rollout(x, v, round_, rollout);
  EXPECT_TRUE(torch::equal(certificate.unsolved, torch::tensor({0, 0, 0, 0, 4})));
  EXPECT_TRUE(torch::equal(certificate.tied, torch::tensor({1, 0, 1, 0, 0})));
  EXPECT_TRUE(torch::equal(certificate.kinked, certificate.tied));
  EXPECT_EQ(certificate.kinked.scalar_type(), torch::kLong);
  EXPECT_FALSE(certificate.kinked.requires_grad());

  const auto weightless = simulate(number(0), number(0), 7, FallingBlock::of(1, 0.5, 0));
  EXPECT_EQ(certify_rollout(number(0), number(0), FallingBlock::of(1, 0.5, 0), weightless).kinked.item<int>(), 7);
}

// The free height is 0 but for rounding.
TEST_F(FallingBlockTest, CountsWhatIsKinkedWithinATolerance) {
  const Tensor x = torch::rand(1000, torch::kDouble), dt = torch::rand(1000, torch::kDouble) + 0.01;
  const FallingBlock block{number(1), dt, number(9.81)};
  const Tensor v = 9.81 * dt - x / dt;
  const auto rollout = simulate(x, v, 1, block);
  EXPECT_EQ(certify_rollout(x, v, block, rollout, 1e-12).kinked.sum().item<int>(), 1000);
  const auto beside = simulate(x, v + 1e-9, 1, block);
  EXPECT_EQ(certify_rollout(x, v + 1e-9, block, beside).kinked.sum().item<int>(), 0);
}

TEST_F(FallingBlockTest, IsKinkedWhereAndOnlyWhereItsOneSidedDerivativesDiffer) {
  const Tensor x = torch::cat({numbers({2, 4, 0, 1, 3, 0, 0}), torch::rand(50, torch::kDouble) * 4});
  const Tensor v = torch::cat({numbers({0, -4, 4, 2, 1, 0, -3}), torch::randn(50, torch::kDouble) * 4});
  const auto rollout = simulate(x, v, 1, round_);
  const Tensor kinked = certify_rollout(x, v, round_, rollout).kinked > 0;
  EXPECT_TRUE(torch::equal(kinked.slice(0, 0, 7), torch::tensor({1, 1, 1, 1, 0, 0, 0}) > 0));
  const Inputs at = {x, v, number(1), number(0.5), number(8)};
  const Tensor here = rollout_of(at, 1);
  const double h = 1e-7;
  Tensor jump = torch::zeros_like(x);
  for (int direction = 0; direction < 20; ++direction) {
    Inputs ahead, behind;
    for (const Tensor& a : at) {
      const Tensor d = h * torch::randn_like(a);
      ahead.push_back(a + d);
      behind.push_back(a - d);
    }
    const Tensor difference = (rollout_of(ahead, 1) - 2 * here + rollout_of(behind, 1)) / h;
    jump = torch::maximum(jump, difference.abs().amax({0, 1}));
  }
  EXPECT_LE(largest(jump.masked_select(~kinked)), 1e-3);
  EXPECT_GE(jump.masked_select(kinked).min().item<double>(), 0.1);
}

TEST_F(FallingBlockTest, RefusesImpossibleParameters) {
  EXPECT_THROW(FallingBlock::of(0, 0.1, 9.81), c10::Error);
  EXPECT_THROW(FallingBlock::of(1, 0, 9.81), c10::Error);
  EXPECT_THROW(FallingBlock::of(1, 0.1, -9.81), c10::Error);
  EXPECT_THROW(FallingBlock::of(kNaN, 0.1, 9.81), c10::Error);
  EXPECT_THROW(simulate(number(1), number(0), 0, round_), c10::Error);
  EXPECT_NO_THROW(FallingBlock::of(1, 0.1, 0));
}

}  // namespace lcp::physics::falling_block_test
