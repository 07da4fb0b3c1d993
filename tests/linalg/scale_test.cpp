#include "linalg/scale.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace lcp::linalg::scale_test {

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

TEST(PowerOfTwoTest, ScalesManyAsOneByOne) {
  std::vector<double> x = {0, -0.0, 1, -1.5, 0x1p-500, -0x1p500, 3, 0x1p1000, 7, 1e-300, kSmallest};
  for (std::size_t count = 0; count <= x.size(); ++count) {
    for (const int exponent : {-1074, -600, -3, 0, 5, 600, 1074}) {
      const PowerOfTwo scale(exponent);
      std::vector<double> scaled(x.size() + 1, 99);
      bool lossless = true;
      const bool said = scale.scale(x.data(), count, scaled.data());
      for (std::size_t i = 0; i < count; ++i) {
        EXPECT_EQ(scaled[i], scale(x[i]));
        lossless = lossless && (x[i] == 0 || std::abs(scaled[i]) >= std::numeric_limits<double>::min());
      }
      EXPECT_EQ(said, lossless);
      EXPECT_EQ(scaled[count], 99);
    }
  }
}

TEST(LargestMagnitudeTest, SeesEverySignAndPlace) {
  EXPECT_EQ(largest_magnitude(nullptr, 0), 0);
  std::vector<double> x = {0, -0.0, 0};
  EXPECT_EQ(largest_magnitude(x.data(), 3), 0);
  x.resize(70);
  for (std::size_t i = 0; i < x.size(); ++i) {
    for (const double value : {kSmallest, -2.0, 1e308}) {
      std::vector<double> y = x;
      y[i] = value;
      EXPECT_EQ(largest_magnitude(y.data(), y.size()), std::abs(value));
      EXPECT_EQ(largest_magnitude(y.data(), i), 0);
    }
  }
}

TEST(LargestMagnitudeTest, IsInfiniteWhereAnyNumberIsNotFinite) {
  for (std::size_t i = 0; i < 70; ++i) {
    for (const double bad : {std::nan(""), kInfinity, -kInfinity}) {
      std::vector<double> x(70, 3.0);
      x[i] = bad;
      EXPECT_EQ(largest_magnitude(x.data(), x.size()), kInfinity);
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
  EXPECT_EQ(exponent_of(-std::numeric_limits<double>::min()), -1021);
  EXPECT_EQ(exponent_of(std::numeric_limits<double>::max()), 1024);
}

}  // namespace lcp::linalg::scale_test
