#include "solver/ladder.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "support/problems.h"

namespace lcp::solver {
namespace {

using testing::Problem;
using testing::RowMatrix;

struct Answer {
  Status status;
  Eigen::VectorXd z, w;
};

Answer solve(const Problem& problem, const Settings& settings = {}) {
  Ladder ladder(problem.n(), settings);
  Answer answer{Status::kNotFound, Eigen::VectorXd(problem.n()), Eigen::VectorXd(problem.n())};
  answer.status = ladder.solve(problem.M.data(), problem.q.data(), nullptr, answer.z.data(), answer.w.data());
  return answer;
}

Problem scalar(double M, double q) { return {RowMatrix::Constant(1, 1, M), Eigen::VectorXd::Constant(1, q)}; }

void expect_solution(const Problem& problem, const Answer& answer, double tolerance = 1e-9) {
  ASSERT_EQ(answer.status, Status::kSolved);
  EXPECT_LE(testing::natural_residual(problem, answer.z), tolerance * problem.q.cwiseAbs().maxCoeff());
  for (int i = 0; i < problem.n(); ++i) {
    EXPECT_GE(answer.z[i], 0);
    EXPECT_GE(answer.w[i], 0);
    EXPECT_EQ(answer.z[i] * answer.w[i], 0);
  }
  EXPECT_LE((problem.M * answer.z + problem.q - answer.w).cwiseAbs().maxCoeff(),
            tolerance * std::max(problem.q.cwiseAbs().maxCoeff(), 1e-300));
}

void expect_nan(const Answer& answer) {
  EXPECT_TRUE(answer.z.array().isNaN().all());
  EXPECT_TRUE(answer.w.array().isNaN().all());
}

TEST(LadderTest, SolvesTheEmptyProblem) {
  EXPECT_EQ(solve({RowMatrix(0, 0), Eigen::VectorXd(0)}).status, Status::kSolved);
}

TEST(LadderTest, ReturnsZeroForNonnegativeQ) {
  const Problem problem{-RowMatrix::Ones(2, 2), Eigen::Vector2d(0, 3)};
  const Answer answer = solve(problem);
  EXPECT_EQ(answer.status, Status::kSolved);
  EXPECT_EQ(answer.z, Eigen::Vector2d::Zero());
  EXPECT_EQ(answer.w, problem.q);
}

TEST(LadderTest, ReportsInfeasibleWhereNoZMakesWNonnegative) {
  const Answer answer = solve(scalar(-1, -1));
  EXPECT_EQ(answer.status, Status::kInfeasible);
  expect_nan(answer);
  EXPECT_EQ(solve(scalar(0, -1)).status, Status::kInfeasible);
}

TEST(LadderTest, ReportsNotFoundWhereThereIsNoSolutionThoughWCanBeNonnegative) {
  Problem problem{RowMatrix(2, 2), Eigen::Vector2d(-1, 0)};
  problem.M << -1, 1, -1, 1;  // z = (0, 1) is feasible; no complementary basis is
  const Answer answer = solve(problem);
  EXPECT_EQ(answer.status, Status::kNotFound);
  expect_nan(answer);
}

TEST(LadderTest, ReportsThePivotLimit) {
  Settings settings;
  settings.max_pivots = 3;
  const Answer answer = solve(testing::murty(6), settings);
  EXPECT_EQ(answer.status, Status::kPivotLimit);
  expect_nan(answer);
}

TEST(LadderTest, KeepsToTheBudgetOverAllRungs) {
  const Problem problem = testing::murty(10);
  for (std::int64_t budget = 0; budget < 400; budget += 37) {
    Settings settings;
    settings.max_pivots = budget;
    Ladder ladder(10, settings);
    Eigen::VectorXd z(10), w(10);
    ladder.solve(problem.M.data(), problem.q.data(), nullptr, z.data(), w.data());
    EXPECT_LE(ladder.pivots(), budget);
  }
}

TEST(LadderTest, ReportsBadInput) {
  for (const double bad : {std::nan(""), std::numeric_limits<double>::infinity()}) {
    EXPECT_EQ(solve(scalar(bad, -1)).status, Status::kBadInput);
    EXPECT_EQ(solve(scalar(1, bad)).status, Status::kBadInput);
    EXPECT_EQ(solve(scalar(1, -bad)).status, Status::kBadInput);
    expect_nan(solve(scalar(bad, 1)));
  }
}

TEST(LadderTest, SolvesPositiveDefiniteProblems) {
  std::mt19937_64 random(1);
  for (const int n : {1, 2, 3, 5, 8, 16, 33, 64}) {
    for (int k = 0; k < 20; ++k) {
      const Problem problem = testing::positive_definite(random, n);
      expect_solution(problem, solve(problem));
    }
  }
}

TEST(LadderTest, SolvesEveryFrictionProblemOfTwoSeeds) {
  for (const int seed : {1, 2}) {
    std::mt19937_64 random(seed);
    for (int k = 0; k < 2000; ++k) {
      const Problem problem = testing::friction_block(random);
      expect_solution(problem, solve(problem));
    }
  }
}

TEST(LadderTest, SolvesMurtysExampleWhereLemkeAloneRunsOut) {
  const Problem problem = testing::murty(16);
  Settings lemke;
  lemke.method = Method::kLemke;
  EXPECT_EQ(solve(problem, lemke).status, Status::kPivotLimit);
  expect_solution(problem, solve(problem));
}

TEST(LadderTest, SolvesMurtysExampleOf32UnknownsWithinTheUsualBudget) {
  const Problem problem = testing::murty(32);
  expect_solution(problem, solve(problem));
}

TEST(LadderTest, SolvesLinearProgramsOnWhichTheSimplexMethodCycles) {
  Eigen::MatrixXd A(3, 4);  // [Beale, 1955]
  A << -0.25, 60, 0.04, -9, -0.5, 90, 0.02, -3, 0, 0, -1, 0;
  const Eigen::Vector4d c(-0.75, 150, -0.02, 6);
  const Problem beale = testing::linear_program(c, A, Eigen::Vector3d(0, 0, -1));
  const Answer answer = solve(beale);
  expect_solution(beale, answer);
  EXPECT_NEAR(c.dot(answer.z.head(4)), -0.05, 1e-12);
}

TEST(LadderTest, SolvesTheKleeMintyCube) {
  const int n = 6;
  Eigen::MatrixXd A = Eigen::MatrixXd::Zero(n, n);
  Eigen::VectorXd b(n), c(n);
  for (int i = 0; i < n; ++i) {
    for (int j = 0; j < i; ++j) A(i, j) = -2 * std::pow(10, i - j);
    A(i, i) = -1;
    b[i] = -std::pow(100, i);
    c[i] = -std::pow(10, n - 1 - i);
  }
  const Problem problem = testing::linear_program(c, A, b);
  const Answer answer = solve(problem);
  expect_solution(problem, answer);
  EXPECT_NEAR(c.dot(answer.z.head(n)), -std::pow(100, n - 1), 1e-3);
}

TEST(LadderTest, SolvesProblemsOfSeveralAndOfInfinitelyManySolutions) {
  Problem problem{RowMatrix(2, 2), Eigen::Vector2d(-1, -1)};
  problem.M << 1, 2, 2, 1;  // three
  expect_solution(problem, solve(problem));
  problem.M << 1, 1, 1, 1;  // a segment; M of rank one
  expect_solution(problem, solve(problem));
  problem = {RowMatrix::Zero(2, 2), Eigen::Vector2d(0, 1)};  // a ray
  expect_solution(problem, solve(problem));
}

TEST(LadderTest, SolvesTinyQ) {
  const Problem problem{RowMatrix::Identity(2, 2), Eigen::Vector2d(-1e-10, 3e-11)};
  EXPECT_EQ(solve(problem).z, Eigen::Vector2d(1e-10, 0));
}

TEST(LadderTest, SolvesFathisExample) {
  const Answer answer = solve(testing::fathi(6));
  ASSERT_EQ(answer.status, Status::kSolved);
  EXPECT_LT((answer.z - Eigen::VectorXd::Unit(6, 0)).norm(), 1e-12);
}

TEST(LadderTest, SolvesACyclicMatrix) {
  // On such cyclic matrices Bard's method cycles [Murty, 1988, ch. 4].
  Problem problem{RowMatrix(3, 3), -Eigen::Vector3d::Ones()};
  problem.M << 1, 2, 0, 0, 1, 2, 2, 0, 1;
  const Answer answer = solve(problem);
  expect_solution(problem, answer);
  EXPECT_LT((answer.z - Eigen::Vector3d::Constant(1.0 / 3)).norm(), 1e-14);
}

TEST(LadderTest, SolvesEntriesOfManyMagnitudes) {
  Problem problem{RowMatrix(3, 3), Eigen::Vector3d(-1e-10, 2.5e4, -4e-5)};
  problem.M << 2.5e4, 1, 0, 1, 4e-5, 0, 0, 0, 1;
  expect_solution(problem, solve(problem));
}

TEST(LadderTest, GivesTheSameAnswerAtEveryScale) {
  std::mt19937_64 random(3);
  for (int k = 0; k < 50; ++k) {
    const Problem problem = testing::friction_block(random, 2, 4);
    const Answer expected = solve(problem);
    for (const int exponent : {-980, -300, 300, 980}) {
      const Problem scaled{problem.M * std::ldexp(1, exponent), problem.q * std::ldexp(1, exponent)};
      const Answer answer = solve(scaled);
      ASSERT_EQ(answer.status, expected.status);
      EXPECT_EQ(answer.z, expected.z);
      const Problem only_q{problem.M, problem.q * std::ldexp(1, exponent)};
      EXPECT_EQ(solve(only_q).z, expected.z * std::ldexp(1, exponent));
    }
  }
}

TEST(LadderTest, ChangesNoStatusFor1e300) {
  std::mt19937_64 random(12);
  for (int k = 0; k < 30; ++k) {
    const Problem problem = testing::friction_block(random, 2, 4);
    for (const auto& [M, q] : {std::pair<double, double>{1e300, 1e300},
                               {1e-300, 1e-300},
                               {1, 1e300},
                               {1, 1e-300},
                               {1e300, 1},
                               {1e-300, 1}}) {
      EXPECT_EQ(
          solve({problem.M / problem.M.cwiseAbs().maxCoeff() * M, problem.q / problem.q.cwiseAbs().maxCoeff() * q})
              .status,
          Status::kSolved);
    }
  }
}

TEST(LadderTest, DependsOnNoFactorOfM) {
  Problem problem{RowMatrix(3, 3), Eigen::Vector3d(-9, 8, -2)};
  problem.M << -5, 8, 9, -1, -1, -4, -7, 6, -9;
  const Status status = solve(problem).status;
  for (const double factor : {1.5, 3.0, 10.0, 1e300}) EXPECT_EQ(solve({problem.M * factor, problem.q}).status, status);
}

TEST(LadderTest, KeepsUnsolvableProblemsUnsolvableAtEveryScale) {
  for (const double scale : {1e-300, 1e-150, 1.0, 1e150, 1e300}) {
    EXPECT_EQ(solve(scalar(-scale, -scale)).status, Status::kInfeasible);
    EXPECT_EQ(solve(scalar(-scale, -1)).status, Status::kInfeasible);
  }
}

TEST(LadderTest, DoesNotClaimASolutionThatItCannotRepresent) {
  EXPECT_EQ(solve(scalar(1e-300, -1e300)).status, Status::kNotFound);         // z = 1e600
  EXPECT_EQ(solve(scalar(1e300, -1e-300)).status, Status::kNotFound);         // z = 1e-600
  EXPECT_EQ(solve(scalar(1.2345e200, -1.1e-120)).status, Status::kNotFound);  // z = 9e-321, of four digits
  Problem overflow{RowMatrix(2, 2), Eigen::Vector2d(-3e38, 3e38)};
  overflow.M << 1e38, 0, 3e38, 1e38;
  Settings settings;
  EXPECT_EQ(solve(overflow, settings).status, Status::kSolved);
  settings.single_precision = true;
  settings.tolerance = 1e-4;
  EXPECT_EQ(solve(overflow, settings).status, Status::kNotFound);  // w = 1.2e39 is no float
}

TEST(LadderTest, SolvesProblemsInMixedUnits) {
  const Problem small{Eigen::Vector2d(1, 1e-9).asDiagonal().toDenseMatrix(), Eigen::Vector2d(-1, -1e-9)};
  EXPECT_LT((solve(small).z - Eigen::Vector2d(1, 1)).norm(), 1e-12);
  std::mt19937_64 random(9);
  for (int k = 0; k < 300; ++k) {
    Problem problem = testing::positive_definite(random, 8);
    for (int i = 0; i < 8; ++i) {
      const double unit = std::pow(10, std::uniform_real_distribution<double>(-6, 6)(random));
      problem.M.row(i) *= unit;
      problem.M.col(i) *= unit;
      problem.q[i] *= unit;
    }
    expect_solution(problem, solve(problem));
  }
}

TEST(LadderTest, SolvesSingularProblemsRoundedToFloat) {
  std::mt19937_64 random(13);
  std::normal_distribution<double> normal;
  Settings settings;
  settings.single_precision = true;
  settings.tolerance = 1e-4;
  for (int k = 0; k < 1000; ++k) {
    const int n = 2 + k % 4;
    const Eigen::VectorXd u = Eigen::VectorXd::NullaryExpr(n, [&] { return normal(random); });
    Eigen::VectorXd z = Eigen::VectorXd::NullaryExpr(n, [&] { return std::max(0.0, normal(random)); });
    Eigen::VectorXd w = Eigen::VectorXd::NullaryExpr(n, [&] { return std::max(0.0, normal(random)); });
    w = (z.array() > 0).select(0, w);
    Problem problem{u * u.transpose(), w - u * u.dot(z)};  // of rank one, solved by z
    problem.M = problem.M.cast<float>().cast<double>();
    problem.q = problem.q.cast<float>().cast<double>();
    if (problem.q.cwiseAbs().maxCoeff() > 0) expect_solution(problem, solve(problem, settings), 1e-4);
  }
}

TEST(LadderTest, VerifiesTheRoundedSolutionInSinglePrecision) {
  Settings settings;
  settings.single_precision = true;
  settings.tolerance = 1e-4;
  std::mt19937_64 random(4);
  for (int k = 0; k < 100; ++k) {
    const Problem problem = testing::friction_block(random, 1, 4);
    const Answer answer = solve(problem, settings);
    expect_solution(problem, answer, 1e-4);
    for (int i = 0; i < problem.n(); ++i) EXPECT_EQ(answer.z[i], static_cast<float>(answer.z[i]));
  }
  settings.tolerance = 1e-12;  // which no float can meet: 1/3 has none
  EXPECT_EQ(solve(scalar(3, -1), settings).status, Status::kNotFound);
}

}  // namespace
}  // namespace lcp::solver
