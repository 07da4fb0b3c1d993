#include "friction/single_contact.h"

#include <gtest/gtest.h>

#include <Eigen/Dense>
#include <cmath>
#include <random>

namespace lcp::friction {
namespace {

using Eigen::Matrix3d;
using Eigen::Vector3d;

class SingleContactTest : public ::testing::Test {
 protected:
  Matrix3d random_matrix(double smallest) {
    const Matrix3d Q = Matrix3d::NullaryExpr([&] { return normal_(numbers_); }).householderQr().householderQ();
    return Q * Vector3d(smallest, 1, 2).asDiagonal() * Q.transpose();
  }
  Vector3d random_vector() {
    return Vector3d::NullaryExpr([&] { return normal_(numbers_); });
  }

  std::mt19937_64 numbers_{1};
  std::normal_distribution<double> normal_;
};

TEST_F(SingleContactTest, ObeysCoulombsLaw) {
  int stick = 0, slide = 0, separate = 0;
  for (int k = 0; k < 3000; ++k) {
    const Matrix3d W = random_matrix(k % 3 == 0 ? 1e-8 : 0.3);
    const Vector3d q = random_vector();
    constexpr double kFriction[] = {0, 0.1, 0.8, 3};
    const double mu = kFriction[k % 4];
    Vector3d g;
    solve_one_contact(W.data(), 3, q.data(), mu, g.data());
    const Vector3d u = W * g + q;
    const double size = q.norm() + W.norm() * g.norm(), slip = u.head<2>().norm(), friction = g.head<2>().norm();
    EXPECT_GE(g.z(), 0);
    EXPECT_LE(friction, mu * g.z() * (1 + 1e-12));
    if (g.z() == 0) {
      EXPECT_GE(u.z(), 0);
      ++separate;
      continue;
    }
    EXPECT_LT(std::abs(u.z()), 1e-12 * size);
    if (slip < 1e-12 * size) {
      ++stick;
      continue;
    }
    EXPECT_NEAR(friction, mu * g.z(), 1e-12 * size);
    EXPECT_LT((g.head<2>() * slip + u.head<2>() * friction).norm(), 1e-11 * size * size);  // opposite
    ++slide;
  }
  EXPECT_GT(std::min({stick, slide, separate}), 250);
}

TEST_F(SingleContactTest, ReadsABlockOfALargerMatrix) {
  const Matrix3d W = random_matrix(0.3);
  const Vector3d q(0.4, -0.2, -1);
  Eigen::Matrix<double, 6, 6, Eigen::RowMajor> large = Eigen::Matrix<double, 6, 6>::Constant(7);
  large.bottomRightCorner<3, 3>() = W;
  Vector3d g, same;
  solve_one_contact(W.data(), 3, q.data(), 0.2, g.data());
  solve_one_contact(large.data() + 3 * 6 + 3, 6, q.data(), 0.2, same.data());
  EXPECT_EQ(g, same);
}

}  // namespace
}  // namespace lcp::friction
