#include "lcp/learning/penalty_loss.h"

#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "lcp/learning/identifiability.h"
#include "lcp/nn/traditional_model.h"
#include "lcp/physics/sliding_block.h"
#include "support/finite_differences.h"
#include "support/tensors.h"

namespace lcp::learning {
namespace {

using torch::Tensor;

// Steps of a block of dt = m = mu = g = 1 from normal v and u; sticking forces add up to |f| + share (1 - |f|).
struct Steps {
  Tensor state;  // (v, u, 1), [n, 3]
  Tensor z;      // [n, 3]
};

Steps steps_with(const Tensor& share) {
  const std::int64_t n = share.size(0);
  const Tensor v = torch::randn({n}, torch::kDouble), u = torch::randn({n}, torch::kDouble);
  const auto step = physics::exact_step(v, u, physics::SlidingBlock::of(1, 1, 1, 1));
  const Tensor spare = (1 - step.lambda_plus - step.lambda_minus) * share / 2;
  return {torch::stack({v, u, torch::ones_like(v)}, -1),
          torch::stack({step.lambda_plus + spare, step.lambda_minus + spare, step.gamma}, -1)};
}

Tensor constant(double share, std::int64_t n) { return torch::full({n}, share, torch::kDouble); }

TEST(PenaltyLossTest, IsTheWeightedSumOfItsTerms) {
  const Tensor G = torch::tensor({{1., 2.}, {0., -1.}}, torch::kDouble);
  const Tensor f = torch::tensor({{-3., 1.}, {1., 0.}}, torch::kDouble);
  const Tensor z = torch::tensor({{1., 3.}, {0., 2.}}, torch::kDouble);
  // w = (4, -2), (5, -2)
  const PenaltyLoss loss = penalty_loss(G, f, z, {2, 3, false});
  EXPECT_DOUBLE_EQ(loss.complementarity.item<double>(), (4 + 6 + 0 + 4) / 2.);
  EXPECT_DOUBLE_EQ(loss.nonnegativity.item<double>(), (2 + 2) / 2.);
  EXPECT_DOUBLE_EQ(loss.total.item<double>(), 2 * 7 + 3 * 2);
  const PenaltyLoss squared = penalty_loss(G, f, z, {2, 3, true});
  EXPECT_DOUBLE_EQ(squared.complementarity.item<double>(), (16 + 36 + 0 + 16) / 2.);
  EXPECT_DOUBLE_EQ(squared.nonnegativity.item<double>(), (4 + 4) / 2.);
}

TEST(PenaltyLossTest, HasTheGradientOfCentralDifferences) {
  torch::manual_seed(3);
  const Tensor z = torch::randn({12, 3}, torch::kDouble).relu();
  for (const bool squared : {false, true}) {
    const auto total = [&](const testing::Inputs& in) {
      return penalty_loss(in[0], in[1], z, {1, 0.7, squared}).total;
    };
    const Tensor G = torch::randn({3, 3}, torch::kDouble), f = torch::randn({12, 3}, torch::kDouble);
    EXPECT_LT(testing::gradient_error(total, {G, f}), 1e-8);
    EXPECT_LT(testing::gradient_error(total, {G.expand({12, 3, 3}).contiguous(), f}), 1e-8);
  }
}

TEST(PenaltyLossTest, IsZeroAtTheTruthAndAtNothing) {
  torch::manual_seed(4);
  const Steps steps = steps_with(torch::rand({500}, torch::kDouble));
  const Tensor truth = nn::TraditionalModelImpl::true_rows(1);
  for (const Tensor& rows : {truth, torch::zeros({3, 6}, torch::kDouble)}) {
    const Tensor f = (rows.slice(1, 3) * steps.state.unsqueeze(-2)).sum(-1);
    EXPECT_LT(penalty_loss(rows.slice(1, 0, 3), f, steps.z, {}).total.item<double>(), 1e-15);
  }
}

// The dimension of the null space of a row's complementarity [Notes, 3.1.3]: 1 is its scale.
std::int64_t free_dimensions(const Steps& steps, std::int64_t row, bool bias, bool affine_matrix) {
  const Tensor active = (steps.z.select(-1, row) > 0).nonzero().squeeze(-1);
  const Tensor z = steps.z.index_select(0, active), state = steps.state.index_select(0, active);
  const Tensor matrix = affine_matrix ? (z.unsqueeze(-1) * state.unsqueeze(-2)).flatten(1) : z;
  const Tensor features = torch::cat({matrix, state.slice(-1, 0, bias ? 3 : 2)}, -1);
  return features.size(1) - identifiability(features).rank;
}

TEST(PenaltyLossTest, DoesNotDetermineEntriesThatDependOnTheSplitOfStickingForces) {
  torch::manual_seed(5);
  const auto free = [](const Tensor& share, bool bias, bool affine_matrix) {
    const Steps steps = steps_with(share);
    std::vector<std::int64_t> dimensions;
    dimensions.reserve(3);
    for (std::int64_t row = 0; row < 3; ++row) {
      dimensions.push_back(free_dimensions(steps, row, bias || row == 2, affine_matrix));
    }
    return dimensions;
  };
  using Dimensions = std::vector<std::int64_t>;
  const Tensor random = torch::rand({400}, torch::kDouble);
  EXPECT_EQ(free(constant(0, 400), true, false), (Dimensions{2, 2, 1}));
  EXPECT_EQ(free(constant(1, 400), true, false), (Dimensions{2, 2, 1}));
  EXPECT_EQ(free(constant(1, 400), false, false), (Dimensions{1, 1, 1}));
  EXPECT_EQ(free(constant(0.5, 400), true, false), (Dimensions{1, 1, 1}));
  EXPECT_EQ(free(random, true, false), (Dimensions{1, 1, 1}));
  EXPECT_EQ(free(constant(0, 400), true, true), (Dimensions{4, 4, 4}));
  EXPECT_EQ(free(constant(1, 400), true, true), (Dimensions{4, 4, 4}));
  EXPECT_EQ(free(random, true, true), (Dimensions{1, 1, 4}));
}

// With M11 free, M12 = M11 - 2 and W13 = 1 - M11 solve all of them where sticking forces add up to mu m g.
TEST(PenaltyLossTest, IsZeroOnAFamilyWhereForcesAddUpToTheLimit) {
  torch::manual_seed(6);
  const Steps steps = steps_with(constant(1, 500));
  for (const double m : {-1.0, 0.0, 0.5, 2.0}) {
    Tensor rows = nn::TraditionalModelImpl::true_rows(1).clone();
    rows[0][0] = m;
    rows[0][1] = m - 2;
    rows[0][5] = 1 - m;
    const Tensor f = (rows.slice(1, 3) * steps.state.unsqueeze(-2)).sum(-1);
    const PenaltyLoss loss = penalty_loss(rows.slice(1, 0, 3), f, steps.z, {});
    EXPECT_LT(loss.complementarity.item<double>(), 1e-15);
  }
}

}  // namespace
}  // namespace lcp::learning
