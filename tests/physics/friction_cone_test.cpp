#include "lcp/physics/friction_cone.h"

#include <gtest/gtest.h>
#include <torch/nn/functional/normalization.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <cmath>
#include <numbers>

namespace lcp::physics::friction_cone_test {

using torch::Tensor;

constexpr auto kEven = {4, 6, 8, 10, 12, 16, 30, 32, 64, 256};

// sum_i max(d_i.a, 0) d_i for the columns d_i of D; a: [b, 2].
Tensor encoded_and_decoded(const Tensor& D, const Tensor& a) {
  return torch::matmul(torch::matmul(a, D).clamp_min(0), D.t());
}

class FrictionConeTest : public ::testing::Test {
 protected:
  void SetUp() override { torch::manual_seed(7); }
};

TEST_F(FrictionConeTest, IsARegularPolygonThatBeginsAtTheXAxis) {
  for (const int n : kEven) {
    const Tensor D = friction_directions(n, torch::kDouble);
    ASSERT_EQ(D.sizes(), (std::vector<std::int64_t>{2, n}));
    for (int j = 0; j < n; ++j) {
      const double angle = 2 * std::numbers::pi * j / n;
      EXPECT_NEAR(D[0][j].item<double>(), std::cos(angle), 1e-15) << n << " " << j;
      EXPECT_NEAR(D[1][j].item<double>(), std::sin(angle), 1e-15) << n << " " << j;
    }
  }
}

TEST_F(FrictionConeTest, HasOppositeDirectionsToTheLastBit) {
  for (const auto dtype : {torch::kDouble, torch::kFloat}) {
    for (const int n : kEven) {
      const Tensor D = friction_directions(n, dtype);
      EXPECT_TRUE(torch::equal(D.slice(1, 0, n / 2), -D.slice(1, n / 2)));
    }
  }
}

TEST_F(FrictionConeTest, HasExactZerosAlongTheAxes) {
  for (const auto dtype : {torch::kDouble, torch::kFloat}) {
    for (const int n : kEven) {
      const Tensor D = friction_directions(n, dtype);
      const int along_axes = n % 4 == 0 ? 4 : 2;
      EXPECT_EQ((D == 0).sum().item<int>(), along_axes);
      EXPECT_EQ((D.abs() == 1).sum().item<int>(), along_axes);
    }
  }
}

TEST_F(FrictionConeTest, IsRoundedOnceFromDoublePrecision) {
  for (const int n : kEven) {
    EXPECT_TRUE(
        torch::equal(friction_directions(n, torch::kFloat), friction_directions(n, torch::kDouble).to(torch::kFloat)));
  }
}

TEST_F(FrictionConeTest, DecodesWhatItEncodes) {
  const Tensor a = torch::randn({3000, 2}, torch::kDouble);
  for (const int n : kEven) {
    const Tensor back = encoded_and_decoded(friction_directions(n, torch::kDouble), a) * (4.0 / n);
    EXPECT_LT((back - a).abs().max().item<double>(), 1e-13) << n;
  }
}

TEST_F(FrictionConeTest, CouldNotDecodeAnOddNumberOfDirections) {
  const Tensor a = torch::randn({3000, 2}, torch::kDouble);
  for (const int n : {3, 5, 7}) {
    const Tensor angle = torch::arange(n, torch::kDouble) * (2 * std::numbers::pi / n);
    const Tensor back = encoded_and_decoded(torch::stack({angle.cos(), angle.sin()}), a) * (4.0 / n);
    EXPECT_GT((back - a).abs().max().item<double>(), 0.01) << n;
  }
}

TEST_F(FrictionConeTest, SpansTheDiskToTheCosineOfHalfAStep) {
  const Tensor a = torch::nn::functional::normalize(torch::randn({20000, 2}, torch::kDouble));
  for (const int n : {4, 6, 8, 16}) {
    const Tensor nearest = torch::matmul(a, friction_directions(n, torch::kDouble)).amax(-1);
    EXPECT_NEAR(nearest.min().item<double>(), std::cos(std::numbers::pi / n), 1e-3);
    EXPECT_GE(nearest.min().item<double>(), std::cos(std::numbers::pi / n) - 1e-15);
  }
}

TEST_F(FrictionConeTest, RefusesOddAndTooFewDirections) {
  for (const int n : {-4, 0, 1, 2, 3, 5, 9}) EXPECT_THROW(friction_directions(n, torch::kDouble), c10::Error) << n;
}

}  // namespace lcp::physics::friction_cone_test
