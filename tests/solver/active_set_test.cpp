#include "solver/active_set.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "solver/ladder.h"
#include "support/problems.h"

namespace lcp::solver {
namespace {

using testing::Problem;
using testing::RowMatrix;

constexpr double kEpsilon = std::numeric_limits<double>::epsilon();

struct Solution {
  Eigen::VectorXd z, w;
};

Solution solve(const Problem& problem) {
  Solution solution{Eigen::VectorXd(problem.n()), Eigen::VectorXd(problem.n())};
  Ladder ladder(problem.n(), {});
  EXPECT_EQ(ladder.solve(problem.M.data(), problem.q.data(), solution.z.data(), solution.w.data()), Status::kSolved);
  return solution;
}

TEST(ActiveSetTest, AgreesWithCentralDifferences) {
  std::mt19937_64 random(2);
  for (int k = 0; k < 50; ++k) {
    const Problem problem = testing::positive_definite(random, 5);
    const Solution solution = solve(problem);
    if ((solution.z + solution.w).minCoeff() < 1e-3) continue;  // too near a tie for the step below
    ActiveSet derivative(5, kEpsilon);
    derivative.set(problem.M.data(), solution.z.data(), solution.w.data());
    const Eigen::VectorXd r = Eigen::VectorXd::LinSpaced(5, -1, 2);
    Eigen::VectorXd dz(5), dw(5);
    derivative.tangent(r.data(), dz.data(), dw.data());
    const double h = 1e-6;
    const Solution plus = solve({problem.M, problem.q + h * r});
    const Solution minus = solve({problem.M, problem.q - h * r});
    EXPECT_LT((dz - (plus.z - minus.z) / (2 * h)).norm(), 1e-6);
    EXPECT_LT((dw - (plus.w - minus.w) / (2 * h)).norm(), 1e-6);
  }
}

TEST(ActiveSetTest, HasTheTangentsTransposeAsAdjoint) {
  std::mt19937_64 random(3);
  for (int k = 0; k < 50; ++k) {
    const Problem problem = testing::friction_block(random, 2, 4);  // nonsymmetric, singular
    const int n = problem.n();
    const Solution solution = solve(problem);
    ActiveSet derivative(n, kEpsilon);
    derivative.set(problem.M.data(), solution.z.data(), solution.w.data());
    const Eigen::VectorXd r = Eigen::VectorXd::LinSpaced(n, -1, 2).array().sin();
    const Eigen::VectorXd g_z = Eigen::VectorXd::LinSpaced(n, 0, 5).array().cos();
    const Eigen::VectorXd g_w = Eigen::VectorXd::LinSpaced(n, 3, 9).array().cos();
    Eigen::VectorXd dz(n), dw(n), t(n);
    derivative.tangent(r.data(), dz.data(), dw.data());
    derivative.adjoint(g_z.data(), g_w.data(), t.data());
    const double forward = g_z.dot(dz) + g_w.dot(dw);
    EXPECT_NEAR(forward, t.dot(r), 1e-9 * std::max(1.0, std::abs(forward)));
  }
}

TEST(ActiveSetTest, TakesTiesAsInactive) {
  const double M = 2;
  for (const double z : {0.0, 1e-17}) {  // q = 0, and what round-off may make of it beside |q| = 1 elsewhere
    const double matrix[4] = {M, 0, 0, 1};
    const double zs[2] = {z, 0};
    const double ws[2] = {0, 1};
    ActiveSet derivative(2, kEpsilon);
    derivative.set(matrix, zs, ws);
    EXPECT_FALSE(derivative.active(0));
    const double r[2] = {1, 0};
    double dz[2], dw[2];
    derivative.tangent(r, dz, dw);
    EXPECT_EQ(dz[0], 0);
    EXPECT_EQ(dw[0], 1);
  }
}

TEST(ActiveSetTest, SeesAnActiveUnknownThatIsSmallBecauseItsColumnIsLarge) {
  const double matrix[4] = {1e20, 0, 0, 1};
  const double zs[2] = {1e-20, 0};
  const double ws[2] = {0, 1};
  ActiveSet derivative(2, kEpsilon);
  derivative.set(matrix, zs, ws);
  EXPECT_TRUE(derivative.active(0));
}

TEST(ActiveSetTest, AnswersAnUnsolvedElementWithZeroOrNaN) {
  const double M = -1;
  const double nan = std::nan("");
  ActiveSet derivative(1, kEpsilon);
  derivative.set(&M, &nan, &nan);
  EXPECT_FALSE(derivative.valid());
  const double zero = 0, one = 1;
  double a = 7, b = 7;
  derivative.tangent(&zero, &a, &b);
  EXPECT_EQ(a, 0);
  EXPECT_EQ(b, 0);
  derivative.tangent(&one, &a, &b);
  EXPECT_TRUE(std::isnan(a) && std::isnan(b));
  derivative.adjoint(&zero, &zero, &a);
  EXPECT_EQ(a, 0);
  derivative.adjoint(&zero, &one, &a);
  EXPECT_TRUE(std::isnan(a));
}

}  // namespace
}  // namespace lcp::solver
