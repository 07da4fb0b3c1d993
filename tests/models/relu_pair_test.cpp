#include "lcp/nn/relu_pair.h"

#include <gtest/gtest.h>
#include <torch/autograd.h>
#include <torch/types.h>

#include "support/finite_differences.h"
#include "support/tensors.h"

namespace lcp::nn {
namespace {

using testing::numbers;
using torch::Tensor;

const Tensor kPositive = numbers({2, 0.5, -1, -0.3, 0.7}), kNegative = numbers({-1, 1.5, 0.4, -2, 0.7});

TEST(ReluPairTest, IsTheDifferenceOfTwoRelus) {
  for (const bool revive : {false, true}) {
    EXPECT_TRUE(torch::equal(relu_pair(kPositive, kNegative, revive), numbers({2, -1, -0.4, 0, 0})));
    EXPECT_DOUBLE_EQ(relu_pair_overlap(kPositive, kNegative, revive).item<double>(), 0.5 * 1.5 + 0.7 * 0.7);
  }
}

TEST(ReluPairTest, HasTheGradientOfCentralDifferences) {
  const auto pair = [](const testing::Inputs& in) { return relu_pair(in[0], in[1], false); };
  const auto overlap = [](const testing::Inputs& in) { return relu_pair_overlap(in[0], in[1], false); };
  EXPECT_LT(testing::gradient_error(pair, {kPositive, kNegative}), 1e-8);
  EXPECT_LT(testing::gradient_error(overlap, {kPositive, kNegative}), 1e-8);
}

// An entry of 0 that should be different: descent from it leads nowhere, or with `revive` to what is asked for.
TEST(ReluPairTest, IsLostAtZeroUnlessRevived) {
  for (const double target : {1.0, -1.0}) {
    for (const bool revive : {false, true}) {
      Tensor P = numbers({-0.1}).requires_grad_(), N = numbers({-0.2}).requires_grad_();
      for (int k = 0; k < 100; ++k) {
        const Tensor loss = (relu_pair(P, N, revive) - target).square().sum();
        const auto gradients = torch::autograd::grad({loss}, {P, N});
        const torch::NoGradGuard no_grad;
        P -= 0.1 * gradients[0];
        N -= 0.1 * gradients[1];
      }
      EXPECT_NEAR(relu_pair(P, N, false).item<double>(), revive ? target : 0, 1e-8);
    }
  }
}

// What is 0 only since two equal parts cancel is left so by the gradient; the overlap makes both parts 0.
TEST(ReluPairTest, LosesItsOverlap) {
  Tensor P = numbers({0.8}).requires_grad_(), N = numbers({0.7}).requires_grad_();
  for (int k = 0; k < 200; ++k) {
    const Tensor loss = relu_pair(P, N, false).abs().sum() + relu_pair_overlap(P, N, false);
    const auto gradients = torch::autograd::grad({loss}, {P, N});
    const torch::NoGradGuard no_grad;
    P -= 0.02 * gradients[0];
    N -= 0.02 * gradients[1];
  }
  EXPECT_EQ(relu_pair(P, N, false).item<double>(), 0);
  EXPECT_LE(P.item<double>(), 0);
}

}  // namespace
}  // namespace lcp::nn
