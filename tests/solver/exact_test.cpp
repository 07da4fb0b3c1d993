#include "support/exact.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <stdexcept>
#include <vector>

namespace lcp::testing::exact_test {

Problem problem(int n, const std::vector<double>& M, const std::vector<double>& q) {
  return {Eigen::Map<const RowMatrix>(M.data(), n, n), Eigen::Map<const Eigen::VectorXd>(q.data(), n)};
}

void expect(const Problem& problem, bool feasible, bool solvable) {
  const Truth truth = truth_of(problem);
  EXPECT_EQ(truth.feasible, feasible) << problem.M << "\n\n" << problem.q;
  EXPECT_EQ(truth.solvable, solvable) << problem.M << "\n\n" << problem.q;
}

TEST(ExactTest, KnowsEveryScalarProblem) {
  for (int M = -2; M <= 2; ++M) {
    for (int q = -2; q <= 2; ++q) {
      const bool solvable = q >= 0 || M > 0;
      expect(problem(1, {double(M)}, {double(q)}), solvable, solvable);
    }
  }
}

TEST(ExactTest, SolvesTheEmptyProblem) { expect(problem(0, {}, {}), true, true); }

TEST(ExactTest, TellsFeasibleFromSolvable) {
  // z_2 >= 1 and so w_2 = z_2 + 1 > 0.
  expect(problem(2, {0, 1, 0, 1}, {-1, 1}), true, false);
  // Is 3 a sum of some of 2 and 4? And 6?
  expect(subset_sum(Eigen::Vector2d(2, 4), 3), true, false);
  expect(subset_sum(Eigen::Vector2d(2, 4), 6), true, true);
  expect(subset_sum(Eigen::Vector2d(2, 4), 7), false, false);
}

TEST(ExactTest, FindsSolutionsAtSingularBasesAlone) {
  // z = (1, 0), w = 0; the bases { z_1 } and { z_1, z_2 } that have it are singular, the regular ones have none.
  expect(problem(2, {0, 0, 1, -1}, {0, -1}), true, true);
  // The same with a row in the way.
  expect(problem(2, {0, 0, 1, -1}, {1, -1}), true, false);
}

TEST(ExactTest, SolvesAllProblemsOfAPMatrix) {
  const RowMatrix M = morris(3).problem.M;
  for (int a = -2; a <= 2; ++a) {
    for (int b = -2; b <= 2; ++b) {
      for (int c = -2; c <= 2; ++c) expect({M, Eigen::Vector3d(a, b, c)}, true, true);
    }
  }
}

TEST(ExactTest, SolvesNoProblemOfANegativeMatrixButTheTrivial) {
  expect({-RowMatrix::Ones(4, 4), Eigen::Vector4d(1, 2, 3, -1)}, false, false);
  expect({-RowMatrix::Ones(4, 4), Eigen::Vector4d(1, 2, 3, 0)}, true, true);
}

TEST(ExactTest, AgreesWithLargeKnownAnswers) {
  expect(murty(4), true, true);
  for (const int n : {3, 5}) {
    expect(csizmadia(n).problem, true, true);
    expect(morris(n).problem, true, true);
    expect(newton_min_cycle(n).problem, true, true);
  }
  // The largest entries that are allowed, all in one row of signs: no overflow.
  RowMatrix M(5, 5);
  for (int i = 0; i < 5; ++i) {
    for (int j = 0; j < 5; ++j) M(i, j) = i == j ? 32 : (i * j) % 2 == 0 ? 32 : -32;
  }
  expect({M, Eigen::VectorXd::Constant(5, 32)}, true, true);
  expect({-32 * RowMatrix::Identity(5, 5), Eigen::VectorXd::Constant(5, -32)}, false, false);
}

TEST(ExactTest, RefusesWhatItCannotAnswerExactly) {
  EXPECT_THROW(truth_of({RowMatrix::Constant(1, 1, 0.5), Eigen::VectorXd::Ones(1)}), std::invalid_argument);
  EXPECT_THROW(truth_of({RowMatrix::Constant(5, 5, 33), Eigen::VectorXd::Ones(5)}), std::invalid_argument);
  EXPECT_THROW(truth_of({RowMatrix::Constant(1, 1, NAN), Eigen::VectorXd::Ones(1)}), std::invalid_argument);
  EXPECT_THROW(truth_of({RowMatrix::Identity(6, 6), Eigen::VectorXd::Ones(6)}), std::invalid_argument);
}

TEST(ExactTest, FindsAllExtremePointsOfTenUnknowns) {
  // z_1 + z_2 = 1 has two extreme points with z >= 0; the other eight z are 1.
  RowMatrix M = RowMatrix::Identity(10, 10);
  M.topLeftCorner(2, 2).setOnes();
  int count = 0;
  EXPECT_FALSE(any_solution({M, -Eigen::VectorXd::Ones(10)}, [&](const Eigen::VectorXd& z) {
    EXPECT_EQ(z.sum(), 9);
    ++count;
    return false;
  }));
  EXPECT_EQ(count, 2);
  EXPECT_FALSE(any_solution({-M, -Eigen::VectorXd::Ones(10)}, [](const Eigen::VectorXd&) { return true; }));
}

TEST(ExactTest, FindsTheSameExtremePointsInUnitsThatNeedMoreBits) {
  std::mt19937_64 random(3);
  std::uniform_int_distribution<int> entry(-2, 2);
  int total = 0;
  for (int k = 0; k < 200; ++k) {
    Problem small{RowMatrix::NullaryExpr(4, 4, [&] { return entry(random); }),
                  Eigen::VectorXd::NullaryExpr(4, [&] { return entry(random); })};
    Problem large = small;
    for (int i = 0; i < 4; ++i) {
      large.M.row(i) *= std::ldexp(1, 3 * i);
      large.q[i] *= std::ldexp(1, 3 * i);
      large.M.col(i) *= std::ldexp(1, 3 * (3 - i));
    }
    std::vector<Eigen::VectorXd> points;
    any_solution(small, [&](const Eigen::VectorXd& z) {
      points.push_back(z);
      return false;
    });
    total += static_cast<int>(points.size());
    std::size_t next = 0;
    any_solution(large, [&](Eigen::VectorXd z) {
      for (int i = 0; i < 4; ++i) z[i] *= std::ldexp(1, 3 * (3 - i));
      EXPECT_TRUE(next < points.size() && z == points[next]);
      ++next;
      return false;
    });
    EXPECT_EQ(next, points.size());
  }
  EXPECT_GT(total, 100);
}

TEST(ExactTest, SolvesASingularBasisByRowsOutsideOfIt) {
  // M_11 = q_1 = 0 leaves z_1 open; only the second row says that it is 2. w = (0, 0, 1).
  const Problem degenerate = problem(3, {0, 1, 0, 1, 0, 0, 1, 0, 0}, {0, -2, -1});
  EXPECT_TRUE(any_solution(degenerate, [](const Eigen::VectorXd& z) { return z == Eigen::Vector3d(2, 0, 0); }));
}

}  // namespace lcp::testing::exact_test
