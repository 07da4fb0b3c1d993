#include "lcp/learning/bilevel_loss.h"

#include <gtest/gtest.h>
#include <torch/autograd.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "lcp/solve.h"
#include "support/errors.h"
#include "support/finite_differences.h"
#include "support/tensors.h"

namespace lcp::learning {
namespace {

using testing::error_of;
using testing::everywhere;
using testing::gradient_error;
using testing::Inputs;
using testing::largest;
using testing::number;
using testing::numbers;
using testing::second_gradient_error;
using torch::Tensor;

// A sliding block with dt = m = g = 1: z = (lambda_plus, lambda_minus, gamma).
Tensor friction_matrix() { return numbers({1, -1, 1, -1, 1, 1, -1, -1, 0}).view({3, 3}); }
Tensor response() { return numbers({1, -1, 0}).view({1, 3}); }
Tensor friction_vector(const Tensor& free, const Tensor& mu) {
  return torch::stack({free, -free, mu.expand_as(free)}, -1);
}
Tensor after_friction(const Tensor& free, double mu) { return free.sign() * (free.abs() - mu).relu(); }

BilevelLoss friction_loss(const Tensor& free, const Tensor& v_next, const Tensor& mu, const BilevelWeights& weights) {
  return bilevel_loss(friction_matrix(), friction_vector(free, mu), response(), (v_next - free).unsqueeze(-1), weights);
}

Tensor slope_in_mu(const Tensor& free, const Tensor& v_next, double mu, const BilevelWeights& weights) {
  const Tensor each = torch::full_like(free, mu).requires_grad_();
  return torch::autograd::grad({friction_loss(free, v_next, each, weights).value.sum()}, {each})[0];
}

// Problems with G + G' positive definite, n = 3, k = 2.
struct Random {
  Tensor G, f, B, beta;
};

Random random_problems(std::int64_t b) {
  const Tensor A = torch::randn({b, 3, 3}, torch::kDouble), S = torch::randn({b, 3, 3}, torch::kDouble);
  return {torch::matmul(A, A.mT()) + 0.3 * torch::eye(3, torch::kDouble) + S - S.mT(),
          torch::randn({b, 3}, torch::kDouble), torch::randn({b, 2, 3}, torch::kDouble),
          torch::randn({b, 2}, torch::kDouble)};
}

Tensor objective(const Random& p, const Tensor& lambda, const Tensor& s, const BilevelWeights& a) {
  const Tensor error = p.beta - torch::matmul(p.B, lambda.unsqueeze(-1)).squeeze(-1);
  const Tensor w = torch::matmul(p.G, lambda.unsqueeze(-1)).squeeze(-1) + p.f;
  return a.prediction * error.square().sum(-1) + a.complementarity * (lambda * w).sum(-1) + a.violation * s.sum(-1);
}

class BilevelLossTest : public ::testing::Test {
 protected:
  void SetUp() override { torch::manual_seed(3); }
};

TEST_F(BilevelLossTest, IsTheLeastOfTheObjective) {
  const Random p = random_problems(200);
  for (const bool hard : {false, true}) {
    const BilevelWeights weights{1.3, 0.7, 0.4, hard};
    const BilevelLoss loss = bilevel_loss(p.G, p.f, p.B, p.beta, weights);
    ASSERT_TRUE(everywhere(loss.status == 0));
    EXPECT_TRUE(everywhere(loss.lambda >= 0) && everywhere(loss.violation >= 0));
    EXPECT_EQ(everywhere(loss.violation == 0), hard);
    const Tensor w = torch::matmul(p.G, loss.lambda.unsqueeze(-1)).squeeze(-1) + p.f;
    EXPECT_GT((w + loss.violation).min().item<double>(), -1e-12);
    EXPECT_LT(largest(objective(p, loss.lambda, loss.violation, weights) - loss.value), 1e-12);
    // No feasible point, near or far, has a lower value.
    for (double scale = 10; scale > 1e-6; scale *= 0.1) {
      const Tensor other = (loss.lambda + scale * torch::randn({200, 200, 3}, torch::kDouble)).relu();
      const Tensor slack = -torch::matmul(p.G, other.unsqueeze(-1)).squeeze(-1) - p.f;
      const Tensor value = objective(p, other, hard ? torch::zeros_like(other) : slack.relu(), weights);
      const Tensor allowed = hard ? (slack <= 0).all(-1) : torch::ones_like(value, torch::kBool);
      EXPECT_TRUE(everywhere((value >= loss.value - 1e-12 * (1 + value.abs())) | ~allowed));
    }
  }
}

TEST_F(BilevelLossTest, HasTheGradientOfTheEnvelopeTheorem) {
  const Random p = random_problems(40);
  for (const bool hard : {false, true}) {
    const BilevelWeights weights{1.3, 0.7, 0.4, hard};
    const auto value = [&](const Inputs& in) { return bilevel_loss(in[0], in[1], in[2], in[3], weights).value; };
    EXPECT_LT(gradient_error(value, {p.G, p.f, p.B, p.beta}), 1e-6);
    EXPECT_LT(gradient_error(value, {p.G[0], p.f, p.B[0], p.beta}), 1e-6);  // shared
    const Tensor f = p.f.detach().clone().requires_grad_();
    const BilevelLoss loss = bilevel_loss(p.G, f, p.B, p.beta, weights);
    const Tensor df = torch::autograd::grad({loss.value.sum()}, {f})[0];
    EXPECT_TRUE(torch::equal(df, weights.complementarity * loss.lambda - loss.multiplier));
  }
}

TEST_F(BilevelLossTest, HasTheSecondDerivativeOfTheSolution) {
  const Random p = random_problems(20);
  for (const bool hard : {false, true}) {
    const BilevelWeights weights{1.3, 0.7, 0.4, hard};
    const auto value = [&](const Inputs& in) { return bilevel_loss(in[0], in[1], in[2], in[3], weights).value; };
    EXPECT_LT(second_gradient_error(value, {p.G, p.f, p.B, p.beta}), 1e-6);
  }
}

TEST_F(BilevelLossTest, AgreesWithTheClosedFormOfASlidingBlock) {
  const std::int64_t b = 500;
  const Tensor v_next = torch::rand({b}, torch::kDouble) * 2 + 0.01;
  const Tensor free = v_next + 1;  // mu = 1
  for (const auto& [a1, a2] : {std::pair{1., 1.}, {10., 1.}, {1., 10.}}) {
    for (const double mu : {1., 1.2, 2., 4.}) {
      const BilevelWeights weights{a1, a2, 100 * a2};
      const BilevelLoss loss = friction_loss(free, v_next, number(mu), weights);
      const Tensor left = free - mu;
      const Tensor p = torch::maximum(left.relu(), (2 * a1 * v_next + a2 * left) / (2 * (a1 + a2)));
      EXPECT_LT(largest(loss.value - (a1 * (v_next - p).square() + a2 * p * (p - left))), 1e-12 * (a1 + a2));
      // Where the friction limit is reached, p = left, and V is the prediction error of train_in_the_loop.
      const Tensor slope = torch::where(p > left, a2 * p, 2 * a1 * (mu - 1));
      EXPECT_LT(largest(slope_in_mu(free, v_next, mu, weights) - slope), 1e-12 * (a1 + a2));
    }
  }
}

TEST_F(BilevelLossTest, HasAGradientBeyondTheDeadZoneOfTheLoop) {
  const Tensor v_next = torch::rand({300}, torch::kDouble) * 2 + 0.01;
  const Tensor free = v_next + 1;
  for (const double a1 : {1., 10., 100.}) {
    const BilevelWeights weights{a1, 1, 1000};
    const double edge = (free + 2 * a1 * v_next).max().item<double>();
    EXPECT_GT(largest(slope_in_mu(free, v_next, 0.95 * edge, weights)), 1e-3);
    EXPECT_LT(largest(slope_in_mu(free, v_next, 1.02 * edge, weights)), 1e-6);
  }
  const double dead = free.max().item<double>();
  for (const double mu : {dead, 1.1 * dead, 4.}) {
    const Tensor guess = number(mu).requires_grad_();
    const Tensor f = friction_vector(free, guess);
    const Tensor w = solve(friction_matrix(), f).w;
    const Tensor predicted = (w.select(-1, 0) - w.select(-1, 1)) / 2;
    const Tensor gradient = torch::autograd::grad({(predicted - v_next).square().mean()}, {guess})[0];
    EXPECT_EQ(gradient.item<double>(), 0) << mu;
  }
}

// [Notes, 3.2.4] does not restrict a3, and uses a3 = 1.
TEST_F(BilevelLossTest, HasTheTruthForAMinimiserWhereViolationsCostEnough) {
  const Tensor free = torch::randn({2000}, torch::kDouble) + torch::randn({2000}, torch::kDouble);
  const Tensor v_next = after_friction(free, 1);
  const double most = std::max(1.0, v_next.abs().max().item<double>());  // lambda* = (1, 0, |v_next|) or less
  for (const double a2 : {0.1, 1., 10.}) {
    const auto mean = [&](double mu, double a3) {
      return friction_loss(free, v_next, number(mu), {1, a2, a3}).value.mean().item<double>();
    };
    const Tensor enough = friction_loss(free, v_next, number(1), {1, a2, 1.001 * a2 * most}).value;
    EXPECT_LT(largest(enough), 1e-12 * a2);
    EXPECT_GT(mean(0.9, 1.001 * a2 * most), 1e-4);
    EXPECT_GT(mean(1.1, 1.001 * a2 * most), 1e-4);
    const Tensor too_little = friction_loss(free, v_next, number(1), {1, a2, 0.99 * a2 * most}).value;
    EXPECT_LT(too_little.min().item<double>(), -1e-6 * a2);
  }
}

TEST_F(BilevelLossTest, SaysWhereThereIsNoLeast) {
  const Tensor free = numbers({1.5, -0.3, 2});
  const Tensor v_next = after_friction(free, 1);
  const Tensor mu = numbers({1, -0.1, 1.5}).requires_grad_();
  for (const bool hard : {false, true}) {
    const BilevelLoss loss = friction_loss(free, v_next, mu, {1, 1, 10, hard});
    EXPECT_TRUE(torch::equal(loss.status == 0, torch::tensor({true, false, true})));
    EXPECT_EQ(loss.status[1].item<int>(), 2);
    for (const Tensor& x : {loss.value, loss.lambda, loss.violation, loss.multiplier}) {
      EXPECT_TRUE(everywhere(x[1].isnan()) && everywhere(x[0].isfinite()) && everywhere(x[2].isfinite()));
    }
    const Tensor solved = loss.value.masked_select(loss.status == 0).sum();
    const Tensor gradient = torch::autograd::grad({solved}, {mu})[0];
    EXPECT_TRUE(everywhere(gradient.isfinite()));
    EXPECT_EQ(gradient[1].item<double>(), 0);
  }
}

TEST_F(BilevelLossTest, KeepsABrokenElementOutOfTheGradientOfWhatOthersShare) {
  const Random p = random_problems(3);
  const auto gradients = [&](const Tensor& f, const Tensor& beta) {
    const Inputs in{p.G[0].clone().requires_grad_(), p.B[0].clone().requires_grad_()};
    const BilevelLoss loss = bilevel_loss(in[0], f, in[1], beta, {});
    return torch::autograd::grad({torch::where(loss.status == 0, loss.value, 0).sum()}, in);
  };
  const Tensor others = torch::tensor({0, 2});
  const auto expected = gradients(p.f.index_select(0, others), p.beta.index_select(0, others));
  for (const bool in_beta : {false, true}) {
    const Tensor f = p.f.clone(), beta = p.beta.clone();
    (in_beta ? beta : f)[1] = NAN;
    const auto seen = gradients(f, beta);
    for (std::size_t i = 0; i < seen.size(); ++i) EXPECT_TRUE(torch::equal(seen[i], expected[i]));
  }
  const Tensor shared = p.beta[0].clone().requires_grad_();
  const Tensor B = p.B.clone();
  B[1] = NAN;
  const BilevelLoss loss = bilevel_loss(p.G, p.f, B, shared, {});
  EXPECT_EQ(loss.status[1].item<int>(), 4);
  const Tensor sum = torch::where(loss.status == 0, loss.value, 0).sum();
  EXPECT_TRUE(everywhere(torch::autograd::grad({sum}, {shared})[0].isfinite()));
}

TEST_F(BilevelLossTest, GivesTheSameBitsInEveryBatch) {
  const Random p = random_problems(33);
  const Tensor whole = bilevel_loss(p.G, p.f, p.B, p.beta, {}).value;
  for (std::int64_t i = 0; i < 33; ++i) {
    EXPECT_TRUE(torch::equal(bilevel_loss(p.G[i], p.f[i], p.B[i], p.beta[i], {}).value, whole[i]));
  }
}

TEST_F(BilevelLossTest, BroadcastsAndKeepsItsPrecision) {
  const Random p = random_problems(5);
  const Tensor beta = torch::randn({4, 1, 2}, torch::kDouble);
  for (const auto dtype : {torch::kDouble, torch::kFloat}) {
    const BilevelLoss loss = bilevel_loss(p.G[0].to(dtype), p.f.to(dtype), p.B[0].to(dtype), beta.to(dtype), {});
    EXPECT_EQ(loss.value.sizes(), (std::vector<std::int64_t>{4, 5}));
    EXPECT_EQ(loss.lambda.sizes(), (std::vector<std::int64_t>{4, 5, 3}));
    EXPECT_EQ(loss.value.scalar_type(), dtype);
    const Tensor one = bilevel_loss(p.G[0], p.f[3], p.B[0], beta[2][0], {}).value;
    EXPECT_NEAR(loss.value[2][3].item<double>(), one.item<double>(), dtype == torch::kFloat ? 1e-4 : 1e-14);
  }
  EXPECT_EQ(bilevel_loss(p.G[0], p.f.slice(0, 0, 0), p.B[0], p.beta[0], {}).value.numel(), 0);
}

TEST_F(BilevelLossTest, RefusesWhatDoesNotFit) {
  const Tensor G = torch::zeros({3, 3}), f = torch::zeros({3}), B = torch::zeros({1, 3}), beta = torch::zeros({1});
  EXPECT_EQ(error_of([&] { bilevel_loss(torch::zeros({3, 2}), f, B, beta, {}); }), "G must be [..., n, n]; got [3, 2]");
  EXPECT_EQ(error_of([&] { bilevel_loss(G, torch::zeros({2}), B, beta, {}); }),
            "f must be [..., n] with n = 3; got [2]");
  EXPECT_EQ(error_of([&] { bilevel_loss(G, f, torch::zeros({3}), beta, {}); }),
            "B must be [..., k, n] with n = 3; got [3]");
  EXPECT_EQ(error_of([&] { bilevel_loss(G, f, B, torch::zeros({2}), {}); }),
            "beta must be [..., k] with k = 1; got [2]");
  EXPECT_EQ(error_of([&] { bilevel_loss(G, f, B, beta, {0, 1, 1}); }), "prediction must be finite and > 0; got 0");
  EXPECT_EQ(error_of([&] {
              bilevel_loss(G, f, B, beta, {1, -1, 1});
            }),
            "complementarity must be finite and >= 0; got -1");
  EXPECT_EQ(error_of([&] {
              bilevel_loss(G, f, B, beta, {1, 1, INFINITY});
            }),
            "violation must be finite and > 0; got inf");
}

}  // namespace
}  // namespace lcp::learning
