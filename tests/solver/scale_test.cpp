#include "solver/scale.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace lcp::solver {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kSmallest = std::numeric_limits<double>::denorm_min();

TEST(PowerOfTwoTest, MultipliesAsLdexpDoes) {
  for (int exponent = -2000; exponent <= 2000; ++exponent) {
    const PowerOfTwo scale(exponent);
    for (const double x : {1.0, -1.5, 0x1p-500, 0x1p500, 0x1p1000}) {
      EXPECT_EQ(scale(x), std::ldexp(x, exponent)) << x << " " << exponent;
    }
  }
}

TEST(PowerOfTwoTest, BringsTheSmallestNumberToOneAndBack) {
  EXPECT_EQ(PowerOfTwo(1074)(kSmallest), 1);
  EXPECT_EQ(PowerOfTwo(-1074)(1), kSmallest);
  EXPECT_EQ(PowerOfTwo(-1024)(std::numeric_limits<double>::max()), 1 - 0x1p-53);
}

TEST(PowerOfTwoTest, OverAndUnderflows) {
  EXPECT_EQ(PowerOfTwo(1024)(1), kInfinity);
  EXPECT_EQ(PowerOfTwo(1024)(-1), -kInfinity);
  EXPECT_EQ(PowerOfTwo(-1076)(1), 0);
  EXPECT_TRUE(std::isnan(PowerOfTwo(3)(std::nan(""))));
}

TEST(PowerOfTwoTest, LeavesZeroAtZeroWhereTheFactorOverflows) {
  EXPECT_EQ(PowerOfTwo(4000)(0), 0);
  EXPECT_EQ(PowerOfTwo(4000)(-0.0), 0);
  EXPECT_EQ(PowerOfTwo(-4000)(0), 0);
}

TEST(LargestMagnitudeTest, SeesEverySignAndPlace) {
  EXPECT_EQ(largest_magnitude(nullptr, 0), 0);
  std::vector<double> x = {0, -0.0, 0};
  EXPECT_EQ(largest_magnitude(x.data(), 3), 0);
  for (std::size_t i = 0; i < 3; ++i) {
    for (const double value : {kSmallest, -2.0, 1e308}) {
      std::vector<double> y = x;
      y[i] = value;
      EXPECT_EQ(largest_magnitude(y.data(), 3), std::abs(value));
    }
  }
}

TEST(LargestMagnitudeTest, IsInfiniteWhereAnyNumberIsNotFinite) {
  for (std::size_t i = 0; i < 3; ++i) {
    for (const double bad : {std::nan(""), kInfinity, -kInfinity}) {
      std::vector<double> x = {1, 2, 3};
      x[i] = bad;
      EXPECT_EQ(largest_magnitude(x.data(), 3), kInfinity);
    }
  }
}

TEST(ExponentOfTest, PutsTheMagnitudeInAHalfOpenOctave) {
  EXPECT_EQ(exponent_of(0), 0);
  EXPECT_EQ(exponent_of(0.5), 0);
  EXPECT_EQ(exponent_of(std::nextafter(1.0, 0)), 0);
  EXPECT_EQ(exponent_of(1), 1);
  EXPECT_EQ(exponent_of(-3), 2);
  EXPECT_EQ(exponent_of(kSmallest), -1073);
  EXPECT_EQ(exponent_of(std::numeric_limits<double>::max()), 1024);
}

TEST(HasNormalImageTest, SeesWhatScalingLost) {
  const double x[3] = {0, 1, -1e-300};
  EXPECT_TRUE(has_normal_image(x, x, 3));
  EXPECT_TRUE(has_normal_image(nullptr, nullptr, 0));
  for (const double lost : {0.0, kSmallest, -0x1p-1023}) {
    const double scaled[3] = {0, 1, lost};
    EXPECT_FALSE(has_normal_image(x, scaled, 3));
    EXPECT_TRUE(has_normal_image(x, scaled, 2));
  }
}

}  // namespace
}  // namespace lcp::solver
