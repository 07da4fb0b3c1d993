#include "lcp/learning/identifiability.h"

#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

namespace lcp::learning {
namespace {

using torch::Tensor;

TEST(IdentifiabilityTest, FindsFullRankWhateverTheColumnsScales) {
  torch::manual_seed(1);
  const Tensor features = torch::randn({50, 3}, torch::kDouble) * torch::tensor({1e-8, 1., 1e8}, torch::kDouble);
  const Identifiability result = identifiability(features);
  EXPECT_EQ(result.rank, 3);
  EXPECT_LT(result.condition, 3);
  EXPECT_EQ(result.null_space.sizes(), (std::vector<std::int64_t>{3, 0}));
}

TEST(IdentifiabilityTest, NamesTheDirectionThatNoDatumSees) {
  torch::manual_seed(1);
  const Tensor x = torch::randn({50, 2}, torch::kDouble);
  const Tensor features = torch::stack({x.select(1, 0), x.select(1, 1), x.sum(1)}, 1);
  const Identifiability result = identifiability(features);
  EXPECT_EQ(result.rank, 2);
  EXPECT_LT(torch::matmul(features, result.null_space).abs().max().item<double>(), 1e-12);
  EXPECT_NEAR(result.null_space.norm().item<double>(), 1, 1e-12);
}

TEST(IdentifiabilityTest, TakesManySamples) {
  torch::manual_seed(1);
  EXPECT_EQ(identifiability(torch::randn({200000, 4}, torch::kDouble)).rank, 4);
}

TEST(IdentifiabilityTest, CountsAColumnOfZerosAndFewRowsAsUnknown) {
  const Tensor features = torch::tensor({{1., 0., 2.}}, torch::kDouble);
  const Identifiability result = identifiability(features);
  EXPECT_EQ(result.rank, 1);
  EXPECT_EQ(result.null_space.size(1), 2);
  EXPECT_LT(torch::matmul(features, result.null_space).abs().max().item<double>(), 1e-15);
}

TEST(IdentifiabilityTest, RefusesOtherShapes) {
  EXPECT_THROW(identifiability(torch::ones({3}, torch::kDouble)), c10::Error);
  EXPECT_THROW(identifiability(torch::ones({3, 2}, torch::kFloat)), c10::Error);
}

}  // namespace
}  // namespace lcp::learning
