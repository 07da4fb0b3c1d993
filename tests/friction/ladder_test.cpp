#include "friction/ladder.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <optional>

#include "support/ball_pile.h"
#include "support/rigid_contacts.h"

namespace lcp::friction {
namespace {

using testing::BallPile;
using testing::RigidContactMaker;
using testing::RigidContacts;
using testing::VectorXd;

constexpr std::int64_t kUnlimited = std::numeric_limits<std::int64_t>::max();
constexpr double kTolerance = 1e-10;

struct Solution {
  Status status;
  VectorXd v, gamma, u;
  std::int64_t iterations;
};

Solution solved(const RigidContacts& bodies, const double* guess = nullptr, std::int64_t most = kUnlimited) {
  Ladder ladder(bodies.n(), bodies.contacts(), {kTolerance, most});
  Solution found{Status::kNotFound, VectorXd(bodies.n()), VectorXd(3 * bodies.contacts()),
                 VectorXd(3 * bodies.contacts()), 0};
  found.status = ladder.solve(bodies.problem(), guess, found.v.data(), found.gamma.data(), found.u.data());
  found.iterations = ladder.iterations();
  return found;
}

// A mass of 2 kg on a plane, pushed along it.
RigidContacts mass_on_plane(double v_t, double v_n, double mu) {
  RigidContacts mass;
  mass.A = 2 * Eigen::Matrix3d::Identity();
  mass.J = Eigen::Matrix3d::Identity();
  mass.v_free = Eigen::Vector3d(v_t, 0, v_n);
  mass.b = Eigen::Vector3d::Zero();
  mass.mu = VectorXd::Constant(1, mu);
  return mass;
}

void expect_true(const RigidContacts& bodies, const Solution& found) {
  EXPECT_LE(bodies.residual(found.v, found.gamma), 2 * kTolerance);
  EXPECT_LE(bodies.imbalance(found.v, found.gamma), 1e-10);
  EXPECT_LE((found.u - bodies.J * found.v - bodies.b).norm(), 1e-12 * (1 + found.u.norm()));
}

void expect_solved(const RigidContacts& bodies, int number) {
  const Solution found = solved(bodies);
  ASSERT_EQ(found.status, Status::kSolved) << number;
  expect_true(bodies, found);
}

TEST(FrictionLadderTest, SticksSlidesAndTakesOff) {
  const Solution sticks = solved(mass_on_plane(0.3, -1, 0.5));
  EXPECT_LT(sticks.v.norm(), 1e-15);
  EXPECT_LT((sticks.gamma - Eigen::Vector3d(-0.6, 0, 2)).norm(), 1e-14);
  const Solution slides = solved(mass_on_plane(0.8, -1, 0.5));
  EXPECT_LT((slides.v - Eigen::Vector3d(0.3, 0, 0)).norm(), 1e-14);
  EXPECT_LT((slides.gamma - Eigen::Vector3d(-1, 0, 2)).norm(), 1e-14);
  const Solution takes_off = solved(mass_on_plane(0.8, 0.1, 0.5));
  EXPECT_EQ(takes_off.v, Eigen::Vector3d(0.8, 0, 0.1));
  EXPECT_EQ(takes_off.gamma.norm(), 0);
  const Solution smooth = solved(mass_on_plane(0.8, -1, 0));
  EXPECT_LT((smooth.gamma - Eigen::Vector3d(0, 0, 2)).norm(), 1e-14);
}

TEST(FrictionLadderTest, SolvesRigidBodies) {
  RigidContactMaker make(1);
  for (int k = 0; k < 2000; ++k) {
    expect_solved(k % 5 < 3 ? make.one_body() : k % 5 == 3 ? make.bodies() : make.stack(2), k);
  }
}

TEST(FrictionLadderTest, SolvesStacksWithMassesThatDiffer) {
  RigidContactMaker make(2);
  for (int k = 0; k < 100; ++k) {
    expect_solved(make.stack(3 + static_cast<int>(8 * make.uniform())), k);
  }
}

// Which corners carry a box depends on differences of the gaps that are tiny beside the velocities.
TEST(FrictionLadderTest, SolvesStacksWithGapsThatDifferByLittle) {
  for (const double gap : {1e-12, 1e-10, 1e-8, 1e-6, 1e-4}) {
    RigidContactMaker make(6);
    for (int k = 0; k < 100; ++k) expect_solved(make.stack_with_gaps(2 + k % 4, gap), k);
  }
}

// What a step leaves of its gaps, some 1e-9 of the velocities, decides which contacts carry the pile in the next ones.
TEST(FrictionLadderTest, SolvesTheStepsOfPilesOfBalls) {
  constexpr double kStepTolerance = 1e-9;
  int problems = 0;
  for (const unsigned seed : {2U, 3U}) {
    BallPile pile(14, seed);
    const auto solve = [&](const RigidContacts& bodies) -> std::optional<VectorXd> {
      Ladder ladder(bodies.n(), bodies.contacts(), {kStepTolerance, kUnlimited});
      VectorXd v(bodies.n()), gamma(3 * bodies.contacts()), u(3 * bodies.contacts());
      if (ladder.solve(bodies.problem(), nullptr, v.data(), gamma.data(), u.data()) != Status::kSolved) return {};
      EXPECT_LE(bodies.residual(v, gamma), 2 * kStepTolerance);
      EXPECT_LE(bodies.imbalance(v, gamma), 1e-10);
      ++problems;
      return v;
    };
    for (int k = 0; k < 250; ++k) ASSERT_TRUE(pile.step(solve)) << seed << ' ' << k;
  }
  EXPECT_GT(problems, 1000);
}

// Problems on which Newton's method fails from most starts, almost all with mu = 3 or with masses that differ by 1e3
// and more.
TEST(FrictionLadderTest, SolvesHardProblemsInFewSteps) {
  struct Hard {
    unsigned seed;
    int boxes;  // in a stack, 0 for RigidContactMaker::bodies and -1 for one_body
    int place;  // among the problems of this seed
  };
  constexpr Hard kHard[] = {{98, 0, 203},   {11, 15, 10}, {378, -1, 103}, {50, -1, 83}, {370, -1, 198}, {233, -1, 124},
                            {154, -1, 206}, {4, -1, 384}, {41, 0, 53},    {21, 0, 213}, {47, 0, 113},   {89, 0, 382},
                            {16, 10, 13},   {15, 15, 0},  {14, -1, 85},   {42, 0, 98},  {7, 8, 13},     {4, 15, 5}};
  std::int64_t steps = 0;
  for (const Hard& hard : kHard) {
    RigidContactMaker make(hard.seed);
    RigidContacts bodies;
    for (int k = 0; k <= hard.place; ++k) {
      bodies = hard.boxes < 0 ? make.one_body() : hard.boxes == 0 ? make.bodies() : make.stack(hard.boxes);
    }
    const Solution found = solved(bodies);
    ASSERT_EQ(found.status, Status::kSolved) << hard.seed << ' ' << hard.place;
    expect_true(bodies, found);
    steps += found.iterations;
  }
  EXPECT_LT(steps, 30'000);
}

// With a corner on the edge of its cone, gamma would have no derivative though the box sticks well within.
TEST(FrictionLadderTest, SharesALoadAmongRedundantContacts) {
  RigidContacts box;
  box.A = Eigen::Matrix<double, 6, 6>::Identity();
  box.A.diagonal().tail<3>().setConstant(1. / 6);
  box.J.resize(12, 6);
  for (int k = 0; k < 4; ++k) {
    const Eigen::Vector3d at(k < 2 ? -0.5 : 0.5, k % 2 == 0 ? -0.5 : 0.5, -0.5);
    for (int i = 0; i < 3; ++i)
      box.J.row(3 * k + i) << Eigen::RowVector3d::Unit(i), at.cross(Eigen::Vector3d::Unit(i)).transpose();
  }
  box.v_free = Eigen::Vector<double, 6>(0.2, 0, -1, 0, 0, 0);
  box.b = VectorXd::Zero(12);
  box.mu = VectorXd::Constant(4, 0.5);
  const Solution found = solved(box);
  ASSERT_EQ(found.status, Status::kSolved);
  for (int k = 0; k < 4; ++k) {
    EXPECT_LT(found.gamma.segment<2>(3 * k).norm(), 0.4 * found.gamma[3 * k + 2]);
  }
}

TEST(FrictionLadderTest, IsNotMisledByAGuess) {
  RigidContactMaker make(3);
  for (int k = 0; k < 50; ++k) {
    const RigidContacts bodies = make.bodies();
    const Solution cold = solved(bodies), warm = solved(bodies, cold.gamma.data());
    EXPECT_EQ(warm.status, Status::kSolved);
    EXPECT_EQ(warm.iterations, 0);
    const VectorXd wrong = VectorXd::Constant(3 * bodies.contacts(), -1e3);
    const Solution misled = solved(bodies, wrong.data());
    ASSERT_EQ(misled.status, Status::kSolved);
    expect_true(bodies, misled);
  }
}

TEST(FrictionLadderTest, SaysWhenItsStepsRunOut) {
  RigidContactMaker make(4);
  const RigidContacts stack = make.stack(4);
  ASSERT_GT(solved(stack).iterations, 2);
  const Solution stopped = solved(stack, nullptr, 2);
  EXPECT_EQ(stopped.status, Status::kPivotLimit);
  EXPECT_EQ(stopped.iterations, 2);
  EXPECT_TRUE(stopped.v.array().isNaN().all() && stopped.gamma.array().isNaN().all());
}

TEST(FrictionLadderTest, ProvesThatAMassBetweenTwoWallsCannotBeWhereBothAre) {
  RigidContacts mass = mass_on_plane(0, 0, 0.5);
  mass.J.resize(6, 3);
  mass.J << Eigen::Matrix3d::Identity(), -Eigen::Matrix3d::Identity();
  mass.b = VectorXd::Zero(6);
  mass.b[2] = mass.b[5] = -1;
  mass.mu = VectorXd::Constant(2, 0.5);
  EXPECT_EQ(solved(mass).status, Status::kInfeasible);
  mass.b[2] = 1;  // one wall has receded
  const Solution found = solved(mass);
  ASSERT_EQ(found.status, Status::kSolved);
  EXPECT_NEAR(found.v[2], -1, 1e-12);
}

// The directions of the fingers balance each other but for rounding errors.
TEST(FrictionLadderTest, ProvesThatFingersAroundABallCannotReachIntoIt) {
  RigidContactMaker make(7);
  for (int fingers = 2; fingers <= 8; ++fingers) {
    for (const double depth : {1e-1, 1e-3, 1e-5}) {
      RigidContacts ball;
      ball.A = Eigen::Matrix<double, 6, 6>::Identity();
      ball.A.diagonal().tail<3>().setConstant(0.4);
      ball.J.resize(3 * fingers, 6);
      ball.b = VectorXd::Zero(3 * fingers);
      ball.mu = VectorXd::Constant(fingers, 0.1 + 2 * make.uniform());
      ball.v_free = VectorXd::NullaryExpr(6, [&] { return 2 * make.uniform() - 1; });
      for (int k = 0; k < fingers; ++k) {
        const double angle = 2 * M_PI * k / fingers, turn = make.uniform();
        const Eigen::Vector3d inwards(-std::cos(angle), -std::sin(angle), 0),
            side = inwards.cross(Eigen::Vector3d::UnitZ());
        const Eigen::Vector3d t1 = std::cos(turn) * side + std::sin(turn) * Eigen::Vector3d::UnitZ();
        for (int i = 0; i < 3; ++i) {
          const Eigen::Vector3d axis = i == 0 ? t1 : i == 1 ? inwards.cross(t1) : inwards;
          ball.J.row(3 * k + i) << axis.transpose(), (-inwards).cross(axis).transpose();
        }
        ball.b[3 * k + 2] = -depth;
      }
      for (const double mass : {0x1p-30, 1., 0x1p30}) {
        RigidContacts scaled = ball;
        scaled.A *= mass;
        const Solution found = solved(scaled);
        EXPECT_EQ(found.status, Status::kInfeasible) << fingers << ' ' << depth;
        EXPECT_LT(found.iterations, 1000);
      }
      ball.b = -ball.b;  // they leave it some room
      expect_solved(ball, fingers);
    }
  }
}

TEST(FrictionLadderTest, TakesAContactThatMovesNothing) {
  RigidContacts mass = mass_on_plane(0.1, -1, 0.5);
  mass.J.conservativeResize(6, 3);
  mass.J.bottomRows(3).setZero();
  mass.b = VectorXd::Zero(6);
  mass.mu = VectorXd::Constant(2, 0.5);
  mass.b[5] = 1;
  const Solution found = solved(mass);
  EXPECT_EQ(found.status, Status::kSolved);
  EXPECT_EQ(found.gamma.tail(3).norm(), 0);
  mass.b[5] = -1;
  EXPECT_EQ(solved(mass).status, Status::kInfeasible);
}

TEST(FrictionLadderTest, TakesNoContacts) {
  RigidContacts mass = mass_on_plane(1, 2, 0);
  mass.J.resize(0, 3);
  mass.b.resize(0);
  mass.mu.resize(0);
  const Solution found = solved(mass);
  EXPECT_EQ(found.status, Status::kSolved);
  EXPECT_EQ(found.v, mass.v_free);
}

TEST(FrictionLadderTest, RefusesBadInput) {
  const auto status = [](const auto& change) {
    RigidContacts mass = mass_on_plane(0.3, -1, 0.5);
    change(mass);
    return solved(mass).status;
  };
  EXPECT_EQ(status([](RigidContacts& m) { m.A(0, 0) = -1; }), Status::kBadInput);
  EXPECT_EQ(status([](RigidContacts& m) { m.A(0, 1) = 1; }), Status::kBadInput);
  EXPECT_EQ(status([](RigidContacts& m) { m.A(2, 2) = 0; }), Status::kBadInput);
  EXPECT_EQ(status([](RigidContacts& m) { m.v_free[1] = NAN; }), Status::kBadInput);
  EXPECT_EQ(status([](RigidContacts& m) { m.J(1, 1) = INFINITY; }), Status::kBadInput);
  EXPECT_EQ(status([](RigidContacts& m) { m.b[0] = NAN; }), Status::kBadInput);
  EXPECT_EQ(status([](RigidContacts& m) { m.mu[0] = -0.1; }), Status::kBadInput);
}

TEST(FrictionLadderTest, DoesNotDependOnUnits) {
  RigidContactMaker make(5);
  for (int k = 0; k < 50; ++k) {
    const RigidContacts bodies = make.bodies();
    RigidContacts scaled = bodies;
    scaled.A *= 0x1p20;
    scaled.v_free *= 0x1p-10;
    scaled.b *= 0x1p-10;
    const Solution a = solved(bodies), b = solved(scaled);
    ASSERT_EQ(b.status, Status::kSolved);
    EXPECT_EQ(b.v, 0x1p-10 * a.v);
    EXPECT_EQ(b.gamma, 0x1p10 * a.gamma);
  }
}

}  // namespace
}  // namespace lcp::friction
