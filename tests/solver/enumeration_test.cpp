#include "solver/enumeration.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "solver/verify.h"
#include "support/problems.h"

namespace lcp::solver::enumeration_test {

using testing::Problem;
using testing::RowMatrix;

constexpr double kTolerance = 1e-9;

Termination run(const Problem& problem, Enumeration& enumeration, std::int64_t max_bases = 1 << 20) {
  std::vector<double> w(problem.n());
  return enumeration.run(problem.M.data(), problem.q.data(), max_bases, [&] {
    return violation(problem.n(), 0, problem.M.data(), problem.q.data(), enumeration.z(), kTolerance, w.data()) <= 1;
  });
}

void expect_solution(const Problem& problem) {
  Enumeration enumeration(problem.n());
  ASSERT_EQ(run(problem, enumeration), Termination::kCandidate) << problem.M << "\n" << problem.q;
  const Eigen::Map<const Eigen::VectorXd> z(enumeration.z(), problem.n());
  EXPECT_LE(testing::natural_residual(problem, z), kTolerance * problem.q.cwiseAbs().maxCoeff());
  for (int i = 0; i < problem.n(); ++i) {
    EXPECT_GE(z[i], 0);
    EXPECT_TRUE(enumeration.basic()[i] || z[i] == 0);
  }
}

// Integer data, solved by an integer z: exact.
Problem planted(std::mt19937_64& random, int n, int largest, double zeros) {
  std::uniform_int_distribution<int> entry(-largest, largest), positive(1, 3);
  std::uniform_real_distribution<double> share(0, 1);
  Eigen::VectorXd z(n), w(n);
  for (int i = 0; i < n; ++i) {
    const double kind = share(random);
    z[i] = kind < 0.5 ? positive(random) : 0;
    w[i] = kind > 0.7 ? positive(random) : 0;
  }
  Problem problem{RowMatrix::NullaryExpr(n, n, [&] { return share(random) < zeros ? 0.0 : entry(random); }), {}};
  problem.q = w - problem.M * z;
  return problem;
}

TEST(EnumerationTest, FindsTheOnlySolutionWhateverItsBasis) {
  std::mt19937_64 random(1);
  std::normal_distribution<double> normal;
  const int n = 5;
  for (int basis = 0; basis < 1 << n; ++basis) {
    Problem problem = testing::positive_definite(random, n);
    const RowMatrix A = RowMatrix::NullaryExpr(n, n, [&] { return normal(random); });
    problem.M += A - A.transpose();
    Eigen::VectorXd z(n), w(n);
    for (int i = 0; i < n; ++i) {
      z[i] = basis >> i & 1;
      w[i] = 1 - z[i];
    }
    problem.q = w - problem.M * z;
    Enumeration enumeration(n);
    ASSERT_EQ(run(problem, enumeration), Termination::kCandidate);
    EXPECT_LT((Eigen::Map<const Eigen::VectorXd>(enumeration.z(), n) - z).norm(), 1e-10);
    EXPECT_EQ(enumeration.bases(), basis + 1);
  }
}

TEST(EnumerationTest, FindsASolutionThatHasASingularBasisOnly) {
  Problem problem{RowMatrix(2, 2), Eigen::Vector2d(-1, 0)};
  problem.M << 0, 1, 0, 0;  // z_1 >= 1
  expect_solution(problem);
  problem.M << 0, 0, 1, 0;
  problem.q << 0, -1;
  expect_solution(problem);
}

TEST(EnumerationTest, FindsASolutionOfEveryProblemThatHasOne) {
  std::mt19937_64 random(2);
  for (int k = 0; k < 3000; ++k) {
    const Problem problem = planted(random, 1 + k % 5, 1 + k % 3, 0.2 * (k % 4));
    if (problem.q.cwiseAbs().maxCoeff() == 0) continue;
    const double scale = std::max(problem.M.cwiseAbs().maxCoeff(), 1.0);
    expect_solution({problem.M / std::exp2(std::ceil(std::log2(scale))), problem.q / problem.q.cwiseAbs().maxCoeff()});
  }
}

TEST(EnumerationTest, FindsASolutionWhereTheMatrixIsOfLowRank) {
  std::mt19937_64 random(3);
  std::uniform_int_distribution<int> entry(-2, 2);
  for (int k = 0; k < 500; ++k) {
    const int n = 3 + k % 3;
    Problem problem = planted(random, n, 1, 0);
    const Eigen::MatrixXd left = Eigen::MatrixXd::NullaryExpr(n, 1 + k % 2, [&] { return entry(random); });
    const Eigen::MatrixXd right = Eigen::MatrixXd::NullaryExpr(1 + k % 2, n, [&] { return entry(random); });
    const Eigen::VectorXd z = Eigen::VectorXd::NullaryExpr(n, [&] { return std::max(0, entry(random)); });
    Eigen::VectorXd w = Eigen::VectorXd::NullaryExpr(n, [&] { return std::max(0, entry(random)); });
    w = (z.array() > 0).select(0, w);
    problem.M = left * right;
    problem.q = w - problem.M * z;
    const double scale = problem.q.cwiseAbs().maxCoeff();
    if (scale > 0) expect_solution({problem.M / 8, problem.q / scale});
  }
}

TEST(EnumerationTest, IsStuckWhereThereIsNoSolution) {
  Enumeration one(1), two(2);
  const Eigen::VectorXd minus = Eigen::VectorXd::Constant(1, -1);
  EXPECT_EQ(run({RowMatrix::Constant(1, 1, -1), minus}, one), Termination::kFailed);
  EXPECT_EQ(one.bases(), 2);
  EXPECT_EQ(run({RowMatrix::Zero(1, 1), minus}, one), Termination::kFailed);
  EXPECT_EQ(one.bases(), 4);  // once more for the singular ones
  Problem problem{RowMatrix(2, 2), Eigen::Vector2d(-1, -1)};
  problem.M << -2, 1, -2, 2;  // regular bases only
  EXPECT_EQ(run(problem, two), Termination::kFailed);
  EXPECT_EQ(two.bases(), 4);
  problem.M << -1, 1, -1, 1;
  problem.q << -1, 0;
  EXPECT_EQ(run(problem, two), Termination::kFailed);
  EXPECT_EQ(two.bases(), 8);
}

TEST(EnumerationTest, ReportsTheEndOfItsBudget) {
  Enumeration enumeration(2);
  Problem problem{RowMatrix(2, 2), Eigen::Vector2d(-1, -1)};
  problem.M << -2, 1, -2, 2;  // regular bases only
  for (int budget = 0; budget < 4; ++budget) {
    EXPECT_EQ(run(problem, enumeration, budget), Termination::kBudget);
    EXPECT_EQ(enumeration.bases(), budget);
  }
  EXPECT_EQ(run(problem, enumeration, 4), Termination::kFailed);
}

TEST(EnumerationTest, SolvesTheEmptyProblem) {
  Enumeration enumeration(0);
  EXPECT_EQ(run({RowMatrix(0, 0), Eigen::VectorXd(0)}, enumeration), Termination::kCandidate);
}

TEST(EnumerationTest, LeavesNothingOfAnEarlierRun) {
  std::mt19937_64 random(4);
  const Problem first = testing::positive_definite(random, 6);
  const Problem second = testing::positive_definite(random, 6);
  Enumeration used(6), fresh(6);
  run(first, used);
  run(second, used);
  run(second, fresh);
  EXPECT_EQ(used.bases(), fresh.bases());
  for (int i = 0; i < 6; ++i) EXPECT_EQ(used.z()[i], fresh.z()[i]);
}

}  // namespace lcp::solver::enumeration_test
