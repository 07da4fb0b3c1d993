#include "lcp/learning/direct_loss.h"

#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "lcp/physics/sliding_block.h"
#include "support/finite_differences.h"

namespace lcp::learning {
namespace {

using torch::Tensor;

TEST(DirectLossTest, IsTheWeightedSumOfItsTerms) {
  const Tensor h = torch::tensor({{3., -1.}, {0.5, 2.}}, torch::kDouble);
  const Tensor target = torch::tensor({{0., 0.}, {0.5, 2.}}, torch::kDouble);
  const Tensor lambda = torch::tensor({{2., 5.}, {-1., 0.}}, torch::kDouble);
  const DirectLoss head = direct_loss(h, target, lambda, true, {2, 3, 5});
  EXPECT_DOUBLE_EQ(head.prediction.item<double>(), 3. / 2);
  EXPECT_DOUBLE_EQ(head.complementarity.item<double>(), (6 + 0.5) / 2);
  EXPECT_DOUBLE_EQ(head.nonnegativity.item<double>(), 1. / 2);
  EXPECT_DOUBLE_EQ(head.total.item<double>(), 2 * 1.5 + 3 * 3.25 + 5 * 0.5);
  const DirectLoss bare = direct_loss(h, target, lambda, false, {2, 3, 5});
  EXPECT_DOUBLE_EQ(bare.prediction.item<double>(), std::sqrt(10) / 2);
  EXPECT_DOUBLE_EQ(bare.complementarity.item<double>(), (6 + 5 + 0.5) / 2);
}

TEST(DirectLossTest, SquaresTheError) {
  const Tensor h = torch::tensor({{3., -1.}, {0.5, 2.}}, torch::kDouble);
  const Tensor target = torch::tensor({{0., 2.}, {0.5, 1.}}, torch::kDouble);
  const DirectLoss loss = direct_loss(h, target, torch::ones_like(h), false, {2, 0, 0, /*squared=*/true});
  EXPECT_DOUBLE_EQ(loss.prediction.item<double>(), (9 + 9 + 1) / 2.);
  EXPECT_DOUBLE_EQ(loss.total.item<double>(), 9 + 9 + 1);
}

TEST(DirectLossTest, AsksNonnegativityOfMovingComponentsAlone) {
  const Tensor h = torch::tensor({{3., -1.}, {-0.5, -2.}}, torch::kDouble);
  const Tensor target = torch::tensor({{3., 0.}, {0.5, 0.}}, torch::kDouble);
  const DirectLossWeights weights{.nonnegativity = 4, .squared = false, .resting = false};
  EXPECT_DOUBLE_EQ(direct_loss(h, target, torch::zeros_like(h), true, weights).nonnegativity.item<double>(), 0.5 / 2);
  EXPECT_DOUBLE_EQ(direct_loss(h, target, torch::zeros_like(h), true, {}).nonnegativity.item<double>(), 3.5 / 2);
  // A component that moves has a gradient even where h < 0, where the head has none.
  const Tensor lost = torch::full({1, 2}, -1., torch::kDouble).requires_grad_();
  const Tensor moves = torch::ones({1, 2}, torch::kDouble);
  direct_loss(lost, moves, torch::zeros_like(moves), true, weights).total.backward();
  EXPECT_TRUE((lost.grad() == -4).all().item<bool>());
}

// [Notes, remark 3] says that neither kind of forces says anything of a block at rest. Complementarity weighs a
// velocity by its force, so that slack and fictitious forces ask both velocities to be 0, and physical forces one of
// them.
TEST(DirectLossTest, WeighsBothVelocitiesOfRestingBlocksUnlessForcesArePhysical) {
  torch::manual_seed(8);
  const physics::SlidingBlock block = physics::SlidingBlock::of(1, 1, 1, 1);
  const Tensor u = (1.8 * torch::rand(200, torch::kDouble) - 0.9), rest = torch::zeros_like(u);
  const auto weighed = [&](const Tensor& forces) {
    const Tensor h = torch::full({200, 2}, 0.1, torch::kDouble).requires_grad_();
    direct_loss(h, torch::zeros_like(h), forces, false, {.prediction = 0, .complementarity = 1, .nonnegativity = 0})
        .total.backward();
    return h.grad() != 0;
  };
  const auto physical = physics::exact_step(rest, u, block);
  EXPECT_TRUE((physical.v_next == 0).all().item<bool>());
  const Tensor with_push = torch::stack({u > 0, u < 0}, -1);  // of (v+, v-)
  const Tensor forces = torch::stack({physical.lambda_plus, physical.lambda_minus}, -1);
  EXPECT_TRUE(torch::equal(weighed(forces), ~with_push));
  EXPECT_TRUE(weighed(1 - forces.flip(-1)).all().item<bool>());  // (lambda'-, lambda'+)
  const auto direct = physics::step(rest, u, block, physics::SlidingBlockFormulation::kDirect).step;
  EXPECT_TRUE(weighed(torch::stack({direct.lambda_plus, direct.lambda_minus}, -1)).all().item<bool>());
}

TEST(DirectLossTest, HasTheGradientOfCentralDifferences) {
  torch::manual_seed(2);
  const Tensor target = torch::randn({12, 2}, torch::kDouble).relu();
  const Tensor lambda = torch::randn({12, 2}, torch::kDouble);
  for (const bool relu : {true, false}) {
    for (const DirectLossWeights& weights : {DirectLossWeights{1, 0.3, 0.7}, {1, 0.3, 0.7, true, false}}) {
      const auto total = [&](const testing::Inputs& in) {
        return direct_loss(in[0], target, lambda, relu, weights).total;
      };
      EXPECT_LT(testing::gradient_error(total, {torch::randn({12, 2}, torch::kDouble)}), 1e-8);
    }
  }
}

TEST(DirectLossTest, HasAFiniteGradientAtTheTruth) {
  const Tensor h = torch::zeros({3, 2}, torch::kDouble).requires_grad_();
  direct_loss(h, torch::zeros({3, 2}, torch::kDouble), torch::ones({3, 2}, torch::kDouble), true, {}).total.backward();
  EXPECT_TRUE(h.grad().isfinite().all().item<bool>());
}

}  // namespace
}  // namespace lcp::learning
