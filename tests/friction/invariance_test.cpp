// What an observer chooses changes no status, and the velocities as it should: his own speed, the tangents of a
// contact, the order of contacts and bodies, and the units.
#include <gtest/gtest.h>

#include <Eigen/Geometry>
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

#include "friction/derivative.h"
#include "friction/ladder.h"
#include "support/effort.h"
#include "support/reordering.h"
#include "support/rigid_contacts.h"

namespace lcp::friction::invariance {
namespace {

using testing::RigidContactMaker;
using testing::RigidContacts;
using testing::VectorXd;

constexpr double kTolerance = 1e-10, kInfinity = std::numeric_limits<double>::infinity();

struct Solution {
  Status status;
  VectorXd v, gamma, u;
};

Solution solved(const RigidContacts& bodies) {
  Ladder ladder(bodies.n(), bodies.contacts(), {kTolerance, std::numeric_limits<std::int64_t>::max()});
  Solution found{Status::kNotFound, VectorXd(bodies.n()), VectorXd(3 * bodies.contacts()),
                 VectorXd(3 * bodies.contacts())};
  found.status = ladder.solve(bodies.problem(), nullptr, found.v.data(), found.gamma.data(), found.u.data());
  return found;
}

// Whether the motion is the only one, and so far from a change of a contact's state that tolerances do not matter.
bool is_certain(const RigidContacts& bodies, const Solution& at) {
  Derivative derivative(bodies.n(), bodies.contacts(), 1e-11);
  Certificate certificate = {};
  if (!derivative.certify(bodies.problem(), {at.v.data(), at.gamma.data(), at.u.data()}, certificate)) return false;
  return certificate.unique && certificate.margin > 1e-3 && bodies.mu.maxCoeff() < 1;
}

VectorXd identity(const VectorXd& v) { return v; }

// How another observer describes the same bodies: the problem, and velocities and impulses in the first one's terms.
struct Description {
  RigidContacts bodies;
  std::function<VectorXd(const VectorXd&)> v = identity, gamma = identity;
  double rounding = 0;  // 1e-9 m/s, of his velocities
};

class InvarianceTest : public ::testing::TestWithParam<double> {
 protected:
  // `speed`, m/s, is that of the bodies.
  RigidContacts next(int k, double speed) {
    RigidContacts bodies = k % 3 == 0 ? make_.one_body() : k % 3 == 1 ? make_.bodies() : make_.stack(2);
    bodies.v_free *= speed;
    bodies.b *= speed;
    return bodies;
  }
  double normal() { return normal_(numbers_); }

  // The other observer's solution is one for the first, too, and where there is only one solution it is the same.
  void expect_same(const std::function<Description(const RigidContacts&)>& describe) {
    int compared = 0, differ = 0;
    const int count = testing::effort(10000);
    for (int k = 0; k < count; ++k) {
      const RigidContacts bodies = next(k, GetParam());
      const Solution mine = solved(bodies);
      ASSERT_EQ(mine.status, Status::kSolved) << k;
      const Description other = describe(bodies);
      const Solution his = solved(other.bodies);
      ASSERT_EQ(his.status, Status::kSolved) << k;
      const double unit = (bodies.J * bodies.v_free + bodies.b).cwiseAbs().maxCoeff();
      const double rounding = 1e-9 * other.rounding / unit;
      const VectorXd v = other.v(his.v);
      ASSERT_LE(bodies.residual(v, other.gamma(his.gamma)), 2 * kTolerance + rounding) << k;
      if (rounding > 1e-7 || !is_certain(bodies, mine)) continue;
      ++compared;
      differ += !((bodies.J * (v - mine.v)).cwiseAbs().maxCoeff() <= (1e-4 + 1e4 * rounding) * unit);
    }
    EXPECT_LE(differ, compared / 1000);
    if (GetParam() == 1) {
      EXPECT_GT(compared, count / 4);
    }
  }

  RigidContactMaker make_{11};
  std::mt19937_64 numbers_{12};
  std::normal_distribution<double> normal_;
};

TEST_P(InvarianceTest, HisSpeedDoesNotMatter) {
  expect_same([&](const RigidContacts& bodies) {
    Description other{bodies};
    const double speed = 30 * std::abs(normal());
    const VectorXd all = VectorXd::NullaryExpr(bodies.n(), [&] { return speed * normal(); });
    other.bodies.v_free += all;
    other.bodies.b -= bodies.J * all;
    other.v = [all](const VectorXd& v) { return VectorXd(v - all); };
    other.rounding = 1e-5 * all.norm();
    return other;
  });
}

TEST_P(InvarianceTest, TheTangentsDoNotMatter) {
  expect_same([&](const RigidContacts& bodies) {
    Description other{bodies};
    std::vector<Eigen::Matrix3d> turns;
    for (Eigen::Index k = 0; k < bodies.contacts(); ++k) {
      const Eigen::Matrix3d turn = Eigen::AngleAxisd(3 * normal(), Eigen::Vector3d::UnitZ()).toRotationMatrix();
      other.bodies.J.middleRows<3>(3 * k) = (turn * bodies.J.middleRows<3>(3 * k)).eval();
      turns.push_back(turn);
    }
    other.gamma = [turns](const VectorXd& gamma) {
      VectorXd mine(gamma.size());
      for (std::size_t k = 0; k < turns.size(); ++k) {
        const auto first = static_cast<Eigen::Index>(3 * k);
        mine.segment<3>(first) = turns[k].transpose() * gamma.segment<3>(first);
      }
      return mine;
    };
    return other;
  });
}

TEST_P(InvarianceTest, TheOrderOfContactsAndBodiesDoesNotMatter) {
  expect_same([&](const RigidContacts& bodies) {
    Description other{bodies};
    std::vector<Eigen::Index> contacts(bodies.contacts()), parts(bodies.n() / 6);
    for (auto* const order : {&contacts, &parts}) {
      std::iota(order->begin(), order->end(), 0);
      std::shuffle(order->begin(), order->end(), numbers_);
    }
    RigidContacts moved = bodies;
    for (Eigen::Index k = 0; k < bodies.contacts(); ++k) {
      const Eigen::Index from = contacts[k];
      moved.J.middleRows<3>(3 * k) = bodies.J.middleRows<3>(3 * from);
      moved.b.segment<3>(3 * k) = bodies.b.segment<3>(3 * from);
      moved.mu[k] = bodies.mu[from];
    }
    other.bodies = moved;
    for (Eigen::Index i = 0; i < bodies.n() / 6; ++i) {
      const Eigen::Index from = 6 * parts[i];
      other.bodies.v_free.segment<6>(6 * i) = bodies.v_free.segment<6>(from);
      other.bodies.J.middleCols<6>(6 * i) = moved.J.middleCols<6>(from);
      other.bodies.A.diagonal().segment<6>(6 * i) = bodies.A.diagonal().segment<6>(from);  // A is diagonal
    }
    other.v = testing::put_back(parts, 6);
    other.gamma = testing::put_back(contacts, 3);
    return other;
  });
}

TEST_P(InvarianceTest, TheUnitsDoNotMatter) {
  expect_same([&](const RigidContacts& bodies) {
    Description other{bodies};
    // The sizes of his units of mass, length and time.
    const double mass = std::pow(10, 3 * normal()), length = std::pow(10, 2 * normal()),
                 time = std::pow(10, 2 * normal());
    VectorXd unit(bodies.n());  // of his velocities
    for (Eigen::Index i = 0; i < bodies.n(); ++i) unit[i] = i % 6 < 3 ? time / length : time;
    const VectorXd scale = unit.cwiseInverse();
    other.bodies.A = scale.asDiagonal() * bodies.A * scale.asDiagonal();
    other.bodies.A *= time * time / (length * length) / mass;
    other.bodies.v_free = unit.cwiseProduct(bodies.v_free);
    other.bodies.J = time / length * bodies.J * scale.asDiagonal();
    other.bodies.b = time / length * bodies.b;
    other.v = [scale](const VectorXd& v) { return VectorXd(scale.cwiseProduct(v)); };
    const double impulse = mass * length / time;
    other.gamma = [impulse](const VectorXd& gamma) { return VectorXd(impulse * gamma); };
    return other;
  });
}

INSTANTIATE_TEST_SUITE_P(Speeds, InvarianceTest, ::testing::Values(1.0, 1e-4, 1e-8));

// Two bodies on a line that approach each other by 1.265e-6 m/s at a speed of 1 m/s.
TEST(FastBodiesTest, SolvesASlowApproachOfFastBodies) {
  RigidContacts bodies;
  bodies.A = Eigen::Matrix2d::Identity();
  bodies.J = Eigen::Matrix<double, 3, 2>::Zero();
  bodies.J.row(2) << -1, 1;
  bodies.b = Eigen::Vector3d::Zero();
  bodies.mu = VectorXd::Zero(1);
  bodies.v_free = Eigen::Vector2d(1.000001265, 1);
  const Solution found = solved(bodies);
  ASSERT_EQ(found.status, Status::kSolved);
  for (int i = 0; i < 2; ++i) EXPECT_NEAR(found.v[i], 1.0000006325, 1e-15);
}

TEST(FrictionOfAnySizeTest, LetsNothingThroughTheFloorWithLargeFriction) {
  for (const double mu : {1e4, 1e8, 1e10, 1e12, kInfinity}) {
    RigidContacts mass;
    mass.A = mass.J = Eigen::Matrix3d::Identity();
    mass.v_free = Eigen::Vector3d(0.8, 0, -0.0981);
    mass.b = Eigen::Vector3d::Zero();
    mass.mu = VectorXd::Constant(1, mu);
    const Solution found = solved(mass);
    ASSERT_EQ(found.status, Status::kSolved) << mu;
    EXPECT_LT(found.v.norm(), 1e-15) << mu;
    EXPECT_LT((found.gamma - Eigen::Vector3d(-0.8, 0, 0.0981)).norm(), 1e-15) << mu;
  }
}

TEST(FrictionOfAnySizeTest, SolvesBodiesWithAnyFriction) {
  int hard = 0;
  for (const double mu : {0.0, 1.0, 30.0, 1e3, 1e4, 1e6, 1e8, 1e10, 1e12, kInfinity}) {
    RigidContactMaker make(21);
    for (int k = 0; k < testing::effort(2000); ++k) {
      RigidContacts body = make.one_body();
      body.b.setZero();
      body.mu.setConstant(mu);
      const Solution found = solved(body);
      ASSERT_EQ(found.status, Status::kSolved) << mu << ' ' << k;
      EXPECT_LE(body.residual(found.v, found.gamma), 2 * kTolerance) << mu << ' ' << k;
      EXPECT_LE(body.imbalance(found.v, found.gamma), 1e-9) << mu << ' ' << k;
      hard += mu > 100 && found.gamma.norm() > 0;
    }
  }
  EXPECT_GT(hard, 400);
}

}  // namespace
}  // namespace lcp::friction::invariance
