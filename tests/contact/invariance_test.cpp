// What an observer chooses changes no status, and the velocities as it should: his own speed, the tangents of a
// contact, the order of contacts and bodies, and the units.
#include <gtest/gtest.h>

#include <Eigen/Geometry>
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numbers>
#include <numeric>
#include <random>
#include <vector>

#include "contact/newton.h"
#include "contact/optimality_check.h"
#include "support/bodies.h"
#include "support/effort.h"
#include "support/reordering.h"
#include "support/rigid_contacts.h"

namespace lcp::contact::invariance {
namespace {

using Eigen::MatrixXd;
using Eigen::VectorXd;
using testing::Bodies;

constexpr double kTolerance = 1e-10;
constexpr Limits kLimits = {kTolerance, kDefaultMaxIterations};

struct Solution {
  Outcome outcome;
  VectorXd v, gamma;
};

Solution solved(const Bodies& bodies) {
  Newton newton(bodies.n, bodies.contacts);
  Solution found{{}, bodies.v_free, VectorXd(3 * bodies.contacts)};
  VectorXd y(3 * bodies.contacts);
  found.outcome = newton.solve(bodies.problem(), kLimits, found.v.data(), y.data(), found.gamma.data());
  return found;
}

double margin(const Bodies& bodies, const VectorXd& v) {
  OptimalityCheck check(bodies.n, bodies.contacts);
  check.set(bodies.problem(), v.data());
  return check.margin();
}

VectorXd identity(const VectorXd& x) { return x; }

// How another observer describes the same bodies: the problem, and velocities and impulses in the first one's terms.
struct Description {
  Bodies bodies;
  std::function<VectorXd(const VectorXd&)> v = identity, gamma = identity;
  double speed = 0;  // his own, m/s
};

// The parameter is the speed of the bodies against each other, m/s.
class ContactInvarianceTest : public ::testing::TestWithParam<double> {
 protected:
  double uniform() { return std::uniform_real_distribution<double>()(numbers_); }
  double normal() { return normal_(numbers_); }

  // Bodies whose contacts are open or closed, with a regularisation from 1e-7 w to w.
  Bodies next(int k) {
    const testing::RigidContacts made = k % 3 == 0 ? make_.one_body() : k % 3 == 1 ? make_.bodies() : make_.stack(2);
    Bodies bodies{
        static_cast<int>(made.n()), static_cast<int>(made.contacts()), made.A, made.J, GetParam() * made.v_free,
        -GetParam() * made.b,       VectorXd(3 * made.contacts()),     made.mu};
    const VectorXd W = bodies.delassus().diagonal();
    const double stiffness = std::pow(10, -7 * uniform());
    for (int c = 0; c < bodies.contacts; ++c) {
      const double w = W.segment<3>(3 * c).mean();
      bodies.R.segment<3>(3 * c) << 1e-3 * w, 1e-3 * w, w / (4 * std::numbers::pi * std::numbers::pi);
      if (k % 2 == 0) bodies.R.segment<3>(3 * c).setConstant(stiffness * w);
    }
    return bodies;
  }

  // A bound on the sum of the errors of both solutions, in the norm of A. Since the objective is strongly convex, an
  // error g of the gradient changes A^1/2 v by at most |A^-1/2 g|, and an error e of R y + J v - v_hat by at most
  // |R^-1/2 e| / 2. A is diagonal.
  static double allowed(const Bodies& bodies, const Solution& at, double speed) {
    const VectorXd roots = bodies.A.diagonal().cwiseSqrt();
    const double change = roots.cwiseProduct(at.v - bodies.v_free).norm();
    const VectorXd speeds = at.v.cwiseAbs() + bodies.v_free.cwiseAbs() + VectorXd::Constant(bodies.n, 2 * speed);
    const VectorXd velocities = bodies.J.cwiseAbs() * speeds + bodies.v_hat.cwiseAbs();
    const VectorXd impulses = velocities.cwiseQuotient(bodies.R) + at.gamma.cwiseAbs();
    const double unit = (bodies.n + 3 * bodies.contacts + 4) * kUnitRoundoff;
    const double of_momentum = unit * roots.cwiseProduct(speeds).norm();
    const double of_impulses = unit * (bodies.J.cwiseAbs().transpose() * impulses).cwiseQuotient(roots).norm();
    const double of_y =
        2 * unit * (velocities + bodies.R.cwiseProduct(at.gamma.cwiseAbs())).cwiseQuotient(bodies.R.cwiseSqrt()).norm();
    return 3 * (std::max(kTolerance * change, std::min(of_impulses, kMaxBlur * change)) + of_momentum + of_y);
  }

  void expect_same(const std::function<Description(const Bodies&)>& describe) {
    int sharp = 0;
    const int count = testing::effort(10000);
    for (int k = 0; k < count; ++k) {
      const Bodies bodies = next(k);
      const Solution mine = solved(bodies);
      ASSERT_EQ(mine.outcome.termination, Termination::kSolved) << k;
      const Description other = describe(bodies);
      const Solution his = solved(other.bodies);
      ASSERT_EQ(his.outcome.termination, Termination::kSolved) << k;
      const VectorXd v = other.v(his.v), roots = bodies.A.diagonal().cwiseSqrt();
      const double error = allowed(bodies, mine, other.speed);
      ASSERT_LE(roots.cwiseProduct(v - mine.v).norm(), error) << k;
      const VectorXd push = bodies.J.transpose() * (other.gamma(his.gamma) - mine.gamma);
      ASSERT_LE(push.cwiseQuotient(roots).norm(), 2 * error) << k;
      const double size = roots.cwiseProduct(mine.v - bodies.v_free).norm();
      sharp += size > 0 && error <= 0.01 * size;
      if (error <= 1e-6 * size) {
        const double first = margin(bodies, mine.v);
        ASSERT_NEAR(margin(other.bodies, his.v), first, 1e-3) << k;
      }
    }
    EXPECT_GT(sharp, count / 3);
  }

  testing::RigidContactMaker make_{11};
  std::mt19937_64 numbers_{12};
  std::normal_distribution<double> normal_;
};

TEST_P(ContactInvarianceTest, HisSpeedDoesNotMatter) {
  constexpr double kSpeeds[] = {0.4, 3, 30, 1000};
  expect_same([&](const Bodies& bodies) {
    Description other{bodies};
    const double speed = kSpeeds[static_cast<int>(4 * uniform())];
    const VectorXd all = VectorXd::NullaryExpr(bodies.n, [&] { return speed * std::tanh(normal()); });
    other.bodies.v_free += all;
    other.bodies.v_hat += bodies.J * all;
    other.v = [all](const VectorXd& v) { return VectorXd(v - all); };
    other.speed = speed;
    return other;
  });
}

TEST_P(ContactInvarianceTest, TheTangentsDoNotMatter) {
  expect_same([&](const Bodies& bodies) {
    Description other{bodies};
    std::vector<Eigen::Matrix3d> turns;
    for (int k = 0; k < bodies.contacts; ++k) {
      const Eigen::Matrix3d turn = Eigen::AngleAxisd(3 * normal(), Eigen::Vector3d::UnitZ()).toRotationMatrix();
      other.bodies.J.middleRows<3>(3 * k) = (turn * bodies.J.middleRows<3>(3 * k)).eval();
      other.bodies.v_hat.segment<3>(3 * k) = (turn * bodies.v_hat.segment<3>(3 * k)).eval();
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

TEST_P(ContactInvarianceTest, TheOrderOfContactsAndBodiesDoesNotMatter) {
  expect_same([&](const Bodies& bodies) {
    Description other{bodies};
    std::vector<int> contacts(bodies.contacts), parts(bodies.n / 6);
    for (auto* const order : {&contacts, &parts}) {
      std::iota(order->begin(), order->end(), 0);
      std::shuffle(order->begin(), order->end(), numbers_);
    }
    Bodies moved = bodies;
    for (int k = 0; k < bodies.contacts; ++k) {
      const int from = contacts[k];
      moved.J.middleRows<3>(3 * k) = bodies.J.middleRows<3>(3 * from);
      moved.v_hat.segment<3>(3 * k) = bodies.v_hat.segment<3>(3 * from);
      moved.R.segment<3>(3 * k) = bodies.R.segment<3>(3 * from);
      moved.mu[k] = bodies.mu[from];
    }
    other.bodies = moved;
    for (int i = 0; i < bodies.n / 6; ++i) {
      const int from = 6 * parts[i];
      other.bodies.v_free.segment<6>(6 * i) = bodies.v_free.segment<6>(from);
      other.bodies.J.middleCols<6>(6 * i) = moved.J.middleCols<6>(from);
      other.bodies.A.diagonal().segment<6>(6 * i) = bodies.A.diagonal().segment<6>(from);  // A is diagonal
    }
    other.v = testing::put_back(parts, 6);
    other.gamma = testing::put_back(contacts, 3);
    return other;
  });
}

TEST_P(ContactInvarianceTest, TheUnitsDoNotMatter) {
  expect_same([&](const Bodies& bodies) {
    Description other{bodies};
    // The sizes of his units of mass, length and time, up to some 1e9.
    const double mass = std::pow(10, 3 * normal()), length = std::pow(10, 2 * normal()),
                 time = std::pow(10, 2 * normal());
    const double speed = length / time;
    VectorXd scale(bodies.n);  // the first observer's velocities over his
    for (int i = 0; i < bodies.n; ++i) scale[i] = i % 6 < 3 ? speed : 1 / time;
    other.bodies.A = scale.asDiagonal() * bodies.A * scale.asDiagonal();
    other.bodies.A /= speed * speed * mass;
    other.bodies.v_free = bodies.v_free.cwiseQuotient(scale);
    other.bodies.J = 1 / speed * bodies.J * scale.asDiagonal();
    other.bodies.v_hat = bodies.v_hat / speed;
    other.bodies.R = mass * bodies.R;
    other.v = [scale](const VectorXd& v) { return VectorXd(scale.cwiseProduct(v)); };
    const double impulse = mass * speed;
    other.gamma = [impulse](const VectorXd& gamma) { return VectorXd(impulse * gamma); };
    return other;
  });
}

INSTANTIATE_TEST_SUITE_P(Speeds, ContactInvarianceTest, ::testing::Values(1.0, 1e-4, 1e-8));

// Two bodies of 1 kg on a line approach each other by 1e-8 m/s. The spring between them takes the share 2 / (2 + R) of
// this velocity.
TEST(FastBodiesTest, SolvesASlowApproachOfFastBodies) {
  for (const double R : {1.0, 1e-3, 1e-6, 1e-9}) {
    for (const double speed : {0.0, 0.4, 3.0, 30.0}) {
      Bodies bodies = testing::random_bodies(2, 1, 0);
      bodies.A.setIdentity();
      bodies.J.setZero();
      bodies.J.row(2) << -1, 1;
      bodies.v_hat.setZero();
      bodies.R.setConstant(R);
      bodies.v_free = Eigen::Vector2d(speed + 1e-8, speed);
      const double approach = bodies.v_free[0] - bodies.v_free[1];
      const Solution found = solved(bodies);
      ASSERT_EQ(found.outcome.termination, Termination::kSolved) << R << ' ' << speed;
      for (int i = 0; i < 2; ++i) {
        EXPECT_NEAR(found.v[i], bodies.v_free[i] + (i == 0 ? -approach : approach) / (2 + R), 1e-15 * (1 + speed));
      }
    }
  }
}

}  // namespace
}  // namespace lcp::contact::invariance
