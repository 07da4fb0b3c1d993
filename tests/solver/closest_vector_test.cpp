#include "solver/closest_vector.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace lcp::solver::closest_vector_test {

using Eigen::MatrixXd;
using Eigen::VectorXd;

double error(const MatrixXd& B, const VectorXd& t, const VectorXd& s) { return (B * (t - s)).norm(); }

TEST(ClosestVectorTest, RoundsWhereTheColumnsAreOrthogonal) {
  const Eigen::Vector3d t(0.4, -1.7, 2.5001);
  EXPECT_EQ(closest_vector(Eigen::Vector3d(1, 1e3, 1e-3).asDiagonal(), t), Eigen::Vector3d(0, -2, 3));
}

TEST(ClosestVectorTest, FindsIntegersItself) {
  const Eigen::Vector2d t(17, -3);
  EXPECT_EQ(closest_vector(Eigen::Matrix2d{{1, 1.01}, {1, 1.02}}, t), t);
}

// Of the integers around t, none comes much closer.
TEST(ClosestVectorTest, IsNearTheBestOfAllIntegersAround) {
  std::mt19937_64 random(3);
  std::normal_distribution<double> normal;
  for (int repeat = 0; repeat < 200; ++repeat) {
    const double narrow = std::pow(10, -(repeat % 5));
    Eigen::Matrix2d B = Eigen::Matrix2d::NullaryExpr([&] { return normal(random); });
    B.col(1) = B.col(0) * normal(random) + narrow * B.col(1);
    const Eigen::Vector2d t = 10 * Eigen::Vector2d::NullaryExpr([&] { return normal(random); });
    double best = error(B, t, t.array().round());
    for (int i = -60; i <= 60; ++i) {
      for (int j = -60; j <= 60; ++j) {
        best = std::min(best, error(B, t, t.array().round().matrix() + Eigen::Vector2d(i, j)));
      }
    }
    EXPECT_LE(error(B, t, closest_vector(B, t)), 2 * best);
  }
}

// Components that are rounded alone miss by the largest singular value, together by far less.
TEST(ClosestVectorTest, IsFarBetterThanRoundingWhereTheMatrixIsIllConditioned) {
  std::mt19937_64 random(3);
  std::normal_distribution<double> normal;
  for (const int k : {2, 4, 8, 16}) {
    const VectorXd direction = VectorXd::NullaryExpr(k, [&] { return normal(random); });
    const MatrixXd small = MatrixXd::NullaryExpr(k, k, [&] { return 1e-6 * normal(random); });
    const MatrixXd B = direction * direction.transpose() + small;
    const VectorXd t = 1e4 * VectorXd::NullaryExpr(k, [&] { return normal(random); });
    const VectorXd s = closest_vector(B, t);
    EXPECT_EQ(s, s.array().round().matrix());
    EXPECT_LE(error(B, t, s), 0.02 * error(B, t, t.array().round()));
  }
}

}  // namespace lcp::solver::closest_vector_test
