#include "friction/active_set.h"

#include <gtest/gtest.h>

#include <Eigen/Geometry>
#include <array>
#include <cmath>
#include <limits>
#include <random>

#include "friction/ladder.h"
#include "support/rigid_contacts.h"

namespace lcp::friction::active_set_test {

using Eigen::Vector3d;
using testing::RigidContacts;
using testing::VectorXd;

constexpr double kInfinity = std::numeric_limits<double>::infinity(), kTolerance = 1e-9;
constexpr std::int64_t kUnlimited = std::numeric_limits<std::int64_t>::max();

// Makes boxes that come down on a face, which is tilted by 1e-6 to 1e-3 rad. Their heights are up to 1e-4 m, so that
// all four corners may touch within the step. The contacts are rigid: no motion of the box closes all gaps without
// slip.
class LandingBoxMaker {
 public:
  explicit LandingBoxMaker(unsigned seed) : numbers_(seed) {}

  RigidContacts box(double mu) {
    constexpr double kStep = 5e-3, kGravity = 9.81;  // s, m/s^2
    Vector3d half = Vector3d::Constant(0.05);
    if (uniform() < 0.5) half = Vector3d(side(), side(), side());
    const double tilt = std::pow(10, -6 + 3 * uniform());
    // Half of the boxes tilt about an edge, and half are aligned with the tangents.
    const double axis = uniform() < 0.5 ? M_PI / 2 * std::floor(4 * uniform()) : 2 * M_PI * uniform();
    const double yaw = uniform() < 0.5 ? 0 : 2 * M_PI * uniform();
    const Eigen::Matrix3d turn = (Eigen::AngleAxisd(yaw, Vector3d::UnitZ()) *
                                  Eigen::AngleAxisd(tilt, Vector3d(std::cos(axis), std::sin(axis), 0)))
                                     .toRotationMatrix();
    RigidContacts box;
    const Vector3d squares = half.cwiseAbs2(), inertia = (Vector3d::Constant(squares.sum()) - squares) / 3;
    box.A = Eigen::Matrix<double, 6, 6>::Identity();
    box.A.bottomRightCorner<3, 3>() = turn * inertia.asDiagonal() * turn.transpose();
    std::array<Vector3d, 4> corners;
    double lowest = kInfinity;
    for (std::size_t k = 0; k < 4; ++k) {
      corners[k] = turn * half.cwiseProduct(Vector3d(k < 2 ? -1 : 1, k % 2 == 0 ? -1 : 1, -1));
      lowest = std::min(lowest, corners[k].z());
    }
    const double gap = uniform() < 0.3 ? 0 : 1e-4 * uniform();
    box.J.resize(12, 6);
    box.b = VectorXd::Zero(12);
    for (Eigen::Index k = 0; k < 4; ++k) {
      const Vector3d& at = corners[static_cast<std::size_t>(k)];
      for (int i = 0; i < 3; ++i) {
        box.J.row(3 * k + i) << Eigen::RowVector3d::Unit(i), at.cross(Vector3d::Unit(i)).transpose();
      }
      box.b[3 * k + 2] = (gap + at.z() - lowest) / kStep;
    }
    const double slower = uniform() < 0.5 ? 1 : std::pow(10, -4 * uniform());
    box.v_free = VectorXd::NullaryExpr(6, [&](Eigen::Index i) { return (i < 3 ? 0.3 : 0.5) * slower * normal(); });
    box.v_free[2] -= kGravity * kStep;
    box.mu = VectorXd::Constant(4, mu);
    return box;
  }

 private:
  double uniform() { return std::uniform_real_distribution<double>()(numbers_); }
  double normal() { return std::normal_distribution<double>()(numbers_); }
  double side() { return 0.03 + 0.07 * uniform(); }

  std::mt19937_64 numbers_;
};

// No gap is negative, so that a solution exists for every finite mu.
TEST(FrictionActiveSetTest, SolvesBoxesThatLandOnAFaceWithLargeFriction) {
  constexpr int kBoxes = 2000;
  for (const double mu : {1e4, 1e6, 1e9, 1e12, kInfinity}) {
    LandingBoxMaker make(11);
    int solved = 0;
    std::int64_t steps = 0;
    for (int k = 0; k < kBoxes; ++k) {
      const RigidContacts box = make.box(mu);
      Ladder ladder(6, 4, {kTolerance, kUnlimited});
      VectorXd v(6), gamma(12), u(12);
      const Status status = ladder.solve(box.problem(), nullptr, v.data(), gamma.data(), u.data());
      steps += ladder.iterations();
      if (status != Status::kSolved) continue;
      ++solved;
      ASSERT_LE(box.residual(v, gamma), 2 * kTolerance) << mu << ' ' << k;
      ASSERT_LE(box.imbalance(v, gamma), 1e-10) << mu << ' ' << k;
    }
    EXPECT_GE(solved, 0.995 * kBoxes) << mu;
    EXPECT_LE(steps, 500 * kBoxes) << mu;
    RecordProperty("solved_" + std::to_string(mu), solved);
  }
}

// A rod whose ends are at different heights. Its lower end sticks, and the other one closes its gap only with a slip.
RigidContacts tilted_rod(double mu) {
  constexpr double kSlope = 1e-4, kGap = 1e-3;
  RigidContacts rod;
  rod.A = Eigen::Matrix<double, 6, 6>::Identity();
  rod.A.diagonal().tail<3>() << 0.01, 0.3, 0.3;
  rod.J.resize(6, 6);
  rod.b = VectorXd::Zero(6);
  for (int k = 0; k < 2; ++k) {
    const Vector3d at(k == 0 ? -1 : 1, 0, k == 0 ? -kSlope : kSlope);
    for (int i = 0; i < 3; ++i) {
      rod.J.row(3 * k + i) << Eigen::RowVector3d::Unit(i), at.cross(Vector3d::Unit(i)).transpose();
    }
  }
  rod.b[5] = kGap;
  rod.v_free = Eigen::Vector<double, 6>(0, 0, -0.05, 0, 0, 0);
  rod.mu = VectorXd::Constant(2, mu);
  return rod;
}

// The slip is the one that two points at a fixed distance need: (x_2 - x_1) . (u_2 - u_1 - b_2 + b_1) = 0.
TEST(FrictionActiveSetTest, FindsTheSlipThatClosesAGap) {
  for (const double mu : {1e4, 1e6, 1e9, 1e12, kInfinity}) {
    const RigidContacts rod = tilted_rod(mu);
    ImpulseProblem problem(6, 2);
    ASSERT_TRUE(problem.set(rod.problem()));
    ActiveSet active_set(2);
    VectorXd h = VectorXd::Zero(6), gamma(6), v(6), u(6);
    std::int64_t steps = 0;
    const double residual = active_set.enumerate(problem.impulses(), 1e-11, h.data(), steps, kUnlimited);
    EXPECT_LE(residual, 1e-11) << mu;
    EXPECT_LE(problem.unscaled(h.data(), gamma.data(), v.data(), u.data()), 1e-10);
    EXPECT_LE(rod.residual(v, gamma), 1e-10) << mu;
    EXPECT_NEAR(std::abs(u[0] - u[3]), 1e-4 * 1e-3, 1e-12) << mu;
    // From the solution for one mu, solve() goes to the one for another.
    const RigidContacts other = tilted_rod(1e3 * mu);
    ImpulseProblem next(6, 2);
    ASSERT_TRUE(next.set(other.problem()));
    steps = 0;
    EXPECT_LE(active_set.solve(next.impulses(), rod.mu.data(), 1e-11, h.data(), steps, kUnlimited), 1e-11) << mu;
    EXPECT_LE(steps, 5) << mu;
  }
}

TEST(FrictionActiveSetTest, StopsWhereItsStepsRunOut) {
  const RigidContacts rod = tilted_rod(1e6);
  ImpulseProblem problem(6, 2);
  ASSERT_TRUE(problem.set(rod.problem()));
  ActiveSet active_set(2);
  VectorXd h = VectorXd::Zero(6);
  for (const std::int64_t most : {0, 1, 2}) {
    std::int64_t steps = 0;
    active_set.enumerate(problem.impulses(), 0, h.data(), steps, most);
    EXPECT_EQ(steps, most);
    h.setZero();
    steps = 0;
    active_set.solve(problem.impulses(), rod.mu.data(), 0, h.data(), steps, most);
    EXPECT_LE(steps, most);
  }
}

}  // namespace lcp::friction::active_set_test
