#include "tosses/free_fall.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace lcp::training::free_fall_test {

using Eigen::Index;
using Eigen::Quaterniond;
using Eigen::Vector3d;

// A body that is held, flies for 60 samples from sample 20 on, slides and rests; it turns about an axis that precesses.
class FreeFallTest : public ::testing::Test {
 protected:
  void record(double noise, const Vector3d& marker) {
    std::mt19937 generator(0);
    std::normal_distribution<double> normal(0, noise);
    const Vector3d start(0, 0, 1), speed(1, 0.5, 0), gravity(0, 0, -9.81);
    for (Index k = 0; k < position.cols(); ++k) {
      const auto at = static_cast<double>(k);
      const double flying = dt * std::clamp(at - 20, 0., 60.), sliding = dt * std::clamp(at - 80, 0., 80.);
      orientation.push_back(Quaterniond(Eigen::AngleAxisd(6 * flying, Vector3d(1, 2, 2) / 3)) *
                            Quaterniond(Eigen::AngleAxisd(4 * flying, Vector3d::UnitX())));
      const Vector3d center = start + speed * flying + gravity * flying * flying / 2 +
                              speed * (sliding - sliding * sliding / (2 * dt * 80));
      position.col(k) = center - orientation.back() * marker;
      for (double& x : position.col(k)) x += normal(generator);
    }
  }

  const double dt = 1. / 240;
  Eigen::Matrix3Xd position{3, 200};
  std::vector<Quaterniond> orientation;
};

TEST_F(FreeFallTest, IsFoundBetweenHandAndGround) {
  record(0, Vector3d::Zero());
  const auto fall = find_free_fall(position, orientation, dt);
  ASSERT_TRUE(fall);
  EXPECT_GE(fall->first, 20);
  EXPECT_LE(fall->first + fall->count, 82);
  EXPECT_GE(fall->count, 45);
  EXPECT_LT((fall->acceleration - Vector3d(0, 0, -9.81)).norm(), 1e-9);
  EXPECT_LT(fall->residual, 1e-12);
  EXPECT_TRUE(fall->center.isZero());
}

TEST_F(FreeFallTest, HasTheErrorOfItsNoise) {
  record(3e-4, Vector3d::Zero());
  const auto fall = find_free_fall(position, orientation, dt);
  ASSERT_TRUE(fall);
  EXPECT_NEAR(fall->residual, 3e-4, 5e-5);
  EXPECT_LT(fall->acceleration_error, 0.05);
  EXPECT_LT((fall->acceleration - Vector3d(0, 0, -9.81)).norm(), 4 * fall->acceleration_error);
  EXPECT_TRUE(fall->center.isZero());
}

TEST_F(FreeFallTest, FindsTheCenterOfABodyThatATrackedPointCircles) {
  const Vector3d marker(0.04, -0.03, 0.05);
  record(1e-5, marker);
  const auto fall = find_free_fall(position, orientation, dt);
  ASSERT_TRUE(fall);
  EXPECT_LT((fall->center - marker).norm(), 1e-3);
  EXPECT_LT((fall->acceleration - Vector3d(0, 0, -9.81)).norm(), 0.05);
}

TEST_F(FreeFallTest, IsNotInABodyAtRest) {
  position.setZero();
  orientation.assign(200, Quaterniond::Identity());
  EXPECT_FALSE(find_free_fall(position, orientation, dt));
  EXPECT_FALSE(find_free_fall(position.leftCols(7), {orientation.begin(), orientation.begin() + 7}, dt));
}

}  // namespace lcp::training::free_fall_test
