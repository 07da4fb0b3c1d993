#include "contact/newton.h"

#include <gtest/gtest.h>

#include <Eigen/Dense>
#include <cmath>
#include <limits>
#include <vector>

#include "contact/sparse_system.h"
#include "support/bodies.h"

namespace lcp::contact {
namespace {

using Eigen::MatrixXd;
using Eigen::Vector3d;
using Eigen::VectorXd;
using testing::Bodies;
using testing::Matrix;
using testing::random_bodies;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

struct Solved {
  Outcome outcome;
  VectorXd v, y, gamma;
};

Solved newton_solution(const Bodies& bodies, const VectorXd& start, const Limits& limits = {1e-10, 200}) {
  Newton newton(bodies.n, bodies.contacts);
  Solved solved{
      {}, start, VectorXd::Constant(3 * bodies.contacts, kNaN), VectorXd::Constant(3 * bodies.contacts, kNaN)};
  solved.outcome = newton.solve(bodies.problem(), limits, solved.v.data(), solved.y.data(), solved.gamma.data());
  return solved;
}
Solved newton_solution(const Bodies& bodies) { return newton_solution(bodies, bodies.v_free); }

struct Size {
  int n, contacts;
};
constexpr Size kSizes[] = {{6, 2}, {12, 6}, {30, 12}, {60, 20}};

TEST(NewtonTest, HasTheGradientAndTheHessianOfItsObjective) {
  for (unsigned seed = 0; seed < 60; ++seed) {
    const Bodies bodies = random_bodies(6, 3, seed);
    const VectorXd v = bodies.v_free + VectorXd::Constant(6, 0.1);
    const double h = 1e-6;
    const VectorXd gradient = bodies.gradient(v);
    const MatrixXd H = bodies.hessian(v);
    for (int i = 0; i < 6; ++i) {
      const VectorXd more = v + h * VectorXd::Unit(6, i), less = v - h * VectorXd::Unit(6, i);
      EXPECT_NEAR((bodies.value(more) - bodies.value(less)) / (2 * h), gradient[i], 1e-6 * gradient.norm());
      EXPECT_LE(((bodies.gradient(more) - bodies.gradient(less)) / (2 * h) - H.col(i)).norm(), 1e-6 * H.norm());
    }
    EXPECT_GT(Eigen::SelfAdjointEigenSolver<MatrixXd>(H).eigenvalues().minCoeff(), 0.5);
  }
}

// The dual: min over gamma in C of gamma' (W + R) gamma / 2 + r' gamma, r = J v_free - v_hat. A point of it whose value
// is minus the primal one proves that both are the least.
TEST(NewtonTest, HasNoDualityGap) {
  for (unsigned seed = 0; seed < 12; ++seed) {
    const Bodies bodies = random_bodies(seed % 2 ? 6 : 9, 1 + static_cast<int>(seed % 4), seed);
    const Solved solved = newton_solution(bodies, bodies.v_free, {1e-14, 200});
    const VectorXd& gamma = solved.gamma;
    ASSERT_LE(solved.outcome.residual, 1e-12);
    const VectorXd r = bodies.J * bodies.v_free - bodies.v_hat;
    const double dual = gamma.dot(bodies.delassus() * gamma + bodies.R.cwiseProduct(gamma)) / 2 + r.dot(gamma);
    EXPECT_NEAR(bodies.value(solved.v), -dual, 1e-12 * std::abs(dual));
    EXPECT_LE((bodies.v_free + bodies.A.ldlt().solve(bodies.J.transpose() * gamma) - solved.v).norm(), 1e-9);
    const VectorXd gap = bodies.J * solved.v - bodies.v_hat + bodies.R.cwiseProduct(gamma);  // in the dual cone
    for (int k = 0; k < bodies.contacts; ++k) {
      const Vector3d g = gap.segment<3>(3 * k), impulse = gamma.segment<3>(3 * k);
      EXPECT_LE(impulse.head<2>().norm(), bodies.mu[k] * impulse.z() * (1 + 1e-14));
      EXPECT_GE(g.z() - bodies.mu[k] * g.head<2>().norm(), -1e-12);
      EXPECT_NEAR(g.dot(impulse), 0, 1e-12);
    }
  }
}

TEST(NewtonTest, TakesFewIterations) {
  for (const auto [n, contacts] : kSizes) {
    std::int64_t sum = 0;
    for (unsigned seed = 0; seed < 20; ++seed) {
      const Bodies bodies = random_bodies(n, contacts, seed);
      const Solved solved = newton_solution(bodies);
      EXPECT_EQ(solved.outcome.termination, Termination::kSolved);
      EXPECT_LE(solved.outcome.iterations, 25);
      sum += solved.outcome.iterations;
      const VectorXd g = bodies.gradient(solved.v);
      EXPECT_LE(g.norm(), 1e-8 * (bodies.A * solved.v).norm());
      EXPECT_LE((solved.gamma - bodies.impulses(solved.v)).norm(), 1e-10 * (1 + solved.gamma.norm()));
      // The start is the solution of a problem nearby.
      Bodies next = bodies;
      next.v_free *= 1.01;
      EXPECT_LE(newton_solution(next, solved.v).outcome.iterations, solved.outcome.iterations + 2);
    }
    EXPECT_LE(sum, 15 * 20) << n;
  }
}

TEST(NewtonTest, StiffGroundTakesFewMore) {
  for (const auto [n, contacts] : kSizes) {
    for (unsigned seed = 0; seed < 20; ++seed) {
      Bodies bodies = random_bodies(n, contacts, seed);
      bodies.R.setConstant(1e-6);
      const Solved solved = newton_solution(bodies);
      EXPECT_EQ(solved.outcome.termination, Termination::kSolved);
      EXPECT_LE(solved.outcome.iterations, 50);  // hundreds from v_free alone
    }
  }
}

// If the iteration limit is reached in a softened problem, the results are still those of the given problem.
TEST(NewtonTest, ReturnsResultsOfTheGivenProblemAtTheIterationLimit) {
  Bodies bodies = random_bodies(12, 6, 3);
  bodies.R.setConstant(1e-6);
  for (int budget = 0; budget < 6; ++budget) {
    const Solved solved = newton_solution(bodies, bodies.v_free, {1e-10, budget});
    EXPECT_EQ(solved.outcome.termination, Termination::kIterationLimit);
    EXPECT_EQ(solved.outcome.iterations, budget);
    EXPECT_LE((solved.gamma - bodies.impulses(solved.v)).norm(), 1e-9 * solved.gamma.norm());
  }
}

TEST(NewtonTest, SolvesAChainAsThePlainAlgebraDoes) {
  const Bodies bodies = testing::chain(30, 1);
  ASSERT_TRUE(sparse_pays(bodies.A.data(), bodies.J.data(), bodies.n, bodies.contacts, Factors::kManyTimes));
  const Solved solved = newton_solution(bodies);
  EXPECT_EQ(solved.outcome.termination, Termination::kSolved);
  EXPECT_LE(bodies.gradient(solved.v).norm(), 1e-9 * (bodies.A * solved.v).norm());
}

TEST(NewtonTest, LeavesSeparatedContactsWithoutImpulse) {
  Bodies bodies = random_bodies(6, 3, 1);
  bodies.v_hat.setConstant(0);
  for (int k = 0; k < 3; ++k) bodies.v_hat[3 * k + 2] = -100;  // far away
  const Solved apart = newton_solution(bodies);
  EXPECT_EQ(apart.outcome.iterations, 0);
  EXPECT_EQ(apart.v, bodies.v_free);
  EXPECT_EQ(apart.gamma, VectorXd::Zero(9));
  const Bodies none = random_bodies(4, 0, 1);
  EXPECT_EQ(newton_solution(none).v, none.v_free);
  EXPECT_EQ(newton_solution(none, VectorXd::Constant(4, 7)).outcome.termination, Termination::kSolved);
}

TEST(NewtonTest, SolvesRedundantContacts) {
  Bodies bodies = random_bodies(6, 2, 3);
  bodies.J.bottomRows<3>() = bodies.J.topRows<3>();
  bodies.v_hat.tail<3>() = bodies.v_hat.head<3>();
  bodies.mu[1] = bodies.mu[0];
  for (const double R : {1e-3, 1e-6}) {
    bodies.R.setConstant(R);
    const Solved solved = newton_solution(bodies, bodies.v_free, {1e-10, 1000});
    EXPECT_EQ(solved.outcome.termination, Termination::kSolved) << R;
    EXPECT_LE((solved.gamma.head<3>() - solved.gamma.tail<3>()).norm(), 1e-8 * (1 + solved.gamma.norm()));
  }
}

// Where R is small, rounding v changes the residual by more than the tolerance, but within the documented bound.
TEST(NewtonTest, StopsAtTheFloorOfRounding) {
  int floors = 0;
  for (unsigned seed = 0; seed < 20; ++seed) {
    Bodies bodies = random_bodies(6, 3, seed);
    for (const double R : {1e-3, 1e-4}) {
      bodies.R.setConstant(R);
      const Solved solved = newton_solution(bodies, bodies.v_free, {1e-14, 5000});
      EXPECT_EQ(solved.outcome.termination, Termination::kSolved) << R << " " << seed << " " << solved.outcome.residual;
      EXPECT_LE(solved.outcome.residual, 1e-14 + 1e-12 / R) << R;
      floors += solved.outcome.residual > 1e-14;
    }
  }
  EXPECT_GT(floors, 10);
}

// The impulses are in the cone, the gaps J v - v_hat + R gamma in the dual cone, and the two are perpendicular. Only
// the gaps, which are differences of velocities, have rounding errors that do not fall with R.
TEST(NewtonTest, SolvesProblemsWithAnyRegularisation) {
  for (const bool redundant : {false, true}) {
    for (unsigned seed = 0; seed < 20; ++seed) {
      Bodies bodies = random_bodies(9, 3, seed);
      bodies.mu.setConstant(0.5);
      if (redundant) {
        bodies.J.bottomRows<3>() = bodies.J.topRows<3>();
        bodies.v_hat.setZero();
      }
      const MatrixXd W = bodies.delassus();
      for (const double R : {1e-6, 1e-8, 1e-10, 1e-12, 1e-13, 1e-14, 1e-15, 1e-16, 1e-20, 1e-300}) {
        bodies.R.setConstant(R * W.diagonal().mean());
        const Solved solved = newton_solution(bodies, bodies.v_free, {1e-10, 1000});
        ASSERT_EQ(solved.outcome.termination, Termination::kSolved) << R << " " << seed;
        EXPECT_LE(solved.outcome.iterations, 40) << R;
        const VectorXd& gamma = solved.gamma;
        const VectorXd pull = bodies.J.transpose() * gamma;
        EXPECT_LE((bodies.A * (solved.v - bodies.v_free) - pull).norm(), 1e-9 * bodies.v_free.norm()) << R;
        const VectorXd gap = bodies.J * solved.v - bodies.v_hat + bodies.R.cwiseProduct(gamma);
        for (int k = 0; k < bodies.contacts; ++k) {
          const Vector3d g = gap.segment<3>(3 * k), impulse = gamma.segment<3>(3 * k);
          EXPECT_LE(impulse.head<2>().norm(), bodies.mu[k] * impulse.z() * (1 + 1e-14));
          EXPECT_GE(g.z() - bodies.mu[k] * g.head<2>().norm(), -1e-12) << R << " " << seed;
          EXPECT_NEAR(g.dot(impulse), 0, 1e-12 * (1 + impulse.norm())) << R << " " << seed;
        }
      }
    }
  }
}

// A body between two walls that come closer: gamma grows as 1 / R, and A v is lost in the sum of two such impulses.
TEST(NewtonTest, SaysSoonWhereRoundingErrorsDecide) {
  Bodies bodies = random_bodies(3, 2, 1);
  bodies.J.bottomRows<3>() = -bodies.J.topRows<3>();
  bodies.v_hat << 0, 0, 1, 0, 0, 1;
  for (const double R : {1e-8, 1e-10}) {
    bodies.R.setConstant(R);
    EXPECT_EQ(newton_solution(bodies).outcome.termination, Termination::kSolved) << R;
  }
  for (const double R : {1e-18, 1e-300}) {
    bodies.R.setConstant(R);
    const Outcome outcome = newton_solution(bodies, bodies.v_free, {1e-10, 1000}).outcome;
    EXPECT_EQ(outcome.termination, Termination::kNoProgress) << R;
    EXPECT_LE(outcome.iterations, 100) << R;
  }
}

// The result does not depend on the memory addresses of the data.
TEST(NewtonTest, HasTheSameBitsAtEachAddress) {
  const Bodies bodies = random_bodies(7, 3, 4);
  const Solved expected = newton_solution(bodies);
  const auto moved = [](const auto& x, std::vector<double>& to, std::size_t by) {
    to.assign(by, kNaN);
    to.insert(to.end(), x.data(), x.data() + x.size());
    return to.data() + by;
  };
  for (std::size_t by = 1; by <= 3; ++by) {
    std::vector<double> A, v_free, J, v_hat, R, mu, start;
    const Problem problem{moved(bodies.A, A, by),         moved(bodies.v_free, v_free, by), moved(bodies.J, J, by),
                          moved(bodies.v_hat, v_hat, by), moved(bodies.R, R, by),           moved(bodies.mu, mu, by)};
    double* v = moved(bodies.v_free, start, by);
    VectorXd y(9), gamma(9);
    Newton(7, 3).solve(problem, {1e-10, 200}, v, y.data(), gamma.data());
    EXPECT_EQ(Eigen::Map<VectorXd>(v, 7), expected.v);
    EXPECT_EQ(gamma, expected.gamma);
  }
}

// Where nothing moves or pushes, the residual has no scale.
TEST(NewtonTest, StartsFromRest) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    Bodies bodies = random_bodies(6, 2, seed);
    bodies.v_hat.setZero();
    const Solved solved = newton_solution(bodies, VectorXd::Zero(6));
    EXPECT_EQ(solved.outcome.termination, Termination::kSolved);
    EXPECT_LE((solved.v - newton_solution(bodies).v).norm(), 1e-8);
  }
}

TEST(NewtonTest, SaysWhyItStopped) {
  const Bodies good = random_bodies(6, 2, 5);
  EXPECT_EQ(newton_solution(good, good.v_free, {1e-10, 1}).outcome.termination, Termination::kIterationLimit);
  const auto after = [&](const auto& change) {
    Bodies bad = good;
    change(bad);
    return newton_solution(bad).outcome.termination;
  };
  EXPECT_EQ(after([](Bodies& b) { b.A(0, 0) = -1; }), Termination::kInvalid);
  EXPECT_EQ(after([](Bodies& b) {
              b.A = Matrix::Constant(6, 6, 1);
              b.J.setZero();
              b.v_hat[2] = 1;
            }),
            Termination::kInvalid);
  EXPECT_EQ(after([](Bodies& b) { b.A(1, 0) += 1; }), Termination::kInvalid);
  EXPECT_EQ(after([](Bodies& b) { b.A(1, 0) += 1e-6; }), Termination::kSolved);
  EXPECT_EQ(after([](Bodies& b) { b.J(2, 1) = kNaN; }), Termination::kInvalid);
  EXPECT_EQ(after([](Bodies& b) { b.R[3] = 0; }), Termination::kInvalid);
  EXPECT_EQ(after([](Bodies& b) { b.R[1] *= 2; }), Termination::kInvalid);
  EXPECT_EQ(after([](Bodies& b) { b.R[1] *= 1 + 1e-6; }), Termination::kSolved);
  EXPECT_EQ(after([](Bodies& b) { b.mu[1] = -0.1; }), Termination::kInvalid);
  EXPECT_EQ(after([](Bodies& b) { b.v_hat[0] = INFINITY; }), Termination::kInvalid);
}

}  // namespace
}  // namespace lcp::contact
