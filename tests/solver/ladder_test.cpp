#include "solver/ladder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>

#include "support/ladder.h"

namespace lcp::solver::ladder_test {

using testing::bimatrix_game;
using testing::expect_nan;
using testing::expect_solution;
using testing::LadderAnswer;
using testing::Problem;
using testing::RowMatrix;
using testing::scalar;
using testing::solve;
using testing::with;

TEST(LadderTest, SolvesTheEmptyProblem) {
  EXPECT_EQ(solve({RowMatrix(0, 0), Eigen::VectorXd(0)}).status, Status::kSolved);
}

TEST(LadderTest, ReturnsZeroForNonnegativeQ) {
  const Problem problem{-RowMatrix::Ones(2, 2), Eigen::Vector2d(0, 3)};
  const LadderAnswer answer = solve(problem);
  EXPECT_EQ(answer.status, Status::kSolved);
  EXPECT_EQ(answer.z, Eigen::Vector2d::Zero());
  EXPECT_EQ(answer.w, problem.q);
}

// Within the tolerance of max |q| z_2 might be anything, and Lemke's method ends before it is basic.
TEST(LadderTest, SolvesRowsInSmallUnitsAsWellAsOthers) {
  for (const int exponent : {-20, -50, -100}) {
    const double small = std::ldexp(1, exponent);
    const LadderAnswer answer = solve({Eigen::Vector2d(1, small).asDiagonal(), Eigen::Vector2d(-1, -2 * small)});
    EXPECT_EQ(answer.status, Status::kSolved);
    EXPECT_EQ(answer.z, Eigen::Vector2d(1, 2));
  }
}

TEST(LadderTest, ReportsInfeasibleWhereNoZMakesWNonnegative) {
  const LadderAnswer answer = solve(scalar(-1, -1));
  EXPECT_EQ(answer.status, Status::kInfeasible);
  expect_nan(answer);
  EXPECT_EQ(solve(scalar(0, -1)).status, Status::kInfeasible);
}

TEST(LadderTest, ReportsNotFoundWhereThereIsNoSolutionThoughWCanBeNonnegative) {
  Problem problem{RowMatrix(2, 2), Eigen::Vector2d(-1, 0)};
  problem.M << -1, 1, -1, 1;  // z = (0, 1) is feasible; no complementary basis is
  const LadderAnswer answer = solve(problem);
  EXPECT_EQ(answer.status, Status::kNotFound);
  expect_nan(answer);
}

TEST(LadderTest, ReportsThePivotLimit) {
  Settings settings;
  settings.max_pivots = 3;
  const LadderAnswer answer = solve(testing::murty(6), settings);
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
  const LadderAnswer answer = solve(beale);
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
  const LadderAnswer answer = solve(problem);
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
  const LadderAnswer answer = solve(testing::fathi(6));
  ASSERT_EQ(answer.status, Status::kSolved);
  EXPECT_LT((answer.z - Eigen::VectorXd::Unit(6, 0)).norm(), 1e-12);
}

TEST(LadderTest, SolvesACyclicMatrix) {
  // On such cyclic matrices Bard's method cycles [Murty, 1988, ch. 4].
  Problem problem{RowMatrix(3, 3), -Eigen::Vector3d::Ones()};
  problem.M << 1, 2, 0, 0, 1, 2, 2, 0, 1;
  const LadderAnswer answer = solve(problem);
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
    const LadderAnswer expected = solve(problem);
    for (const int exponent : {-980, -300, 300, 980}) {
      const Problem scaled{problem.M * std::ldexp(1, exponent), problem.q * std::ldexp(1, exponent)};
      const LadderAnswer answer = solve(scaled);
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
    const LadderAnswer answer = solve(problem, settings);
    expect_solution(problem, answer, 1e-4);
    for (int i = 0; i < problem.n(); ++i) EXPECT_EQ(answer.z[i], static_cast<float>(answer.z[i]));
  }
  settings.tolerance = 1e-12;  // which no float can meet: 1/3 has none
  EXPECT_EQ(solve(scalar(3, -1), settings).status, Status::kNotFound);
}

TEST(LadderTest, SolvesBimatrixGamesOnWhichLemkeEndsOnARay) {
  std::mt19937_64 random(24);
  int rays = 0;
  for (const auto& [rows, columns] :
       {std::pair(3, 4), std::pair(6, 6), std::pair(10, 10), std::pair(5, 15), std::pair(20, 20)}) {
    for (int k = 0; k < 20; ++k) {
      const Problem problem = bimatrix_game(random, rows, columns);
      expect_solution(problem, solve(problem));
      rays += solve(problem, with(Method::kLemke)).status == Status::kNotFound;
    }
  }
  EXPECT_GT(rays, 20);
}

TEST(LadderTest, SolvesDiagonalsOfSixteenOrdersOfMagnitude) {
  std::mt19937_64 random(25);
  std::uniform_real_distribution<double> decades(-8, 8), sign(-1, 1);
  int by_rows = 0;
  for (const int n : {2, 5, 12, 30}) {
    for (int k = 0; k < 100; ++k) {
      Problem problem{RowMatrix::Zero(n, n), Eigen::VectorXd(n)};
      for (int i = 0; i < n; ++i) {
        const double row = std::pow(10, decades(random));
        const double column = std::pow(10, decades(random));
        problem.M(i, i) = k % 2 ? row * column : column;  // q in the units of the rows, or in others
        problem.q[i] = std::copysign(row, sign(random));
      }
      Ladder ladder(n, {});
      LadderAnswer answer{Status::kNotFound, Eigen::VectorXd(n), Eigen::VectorXd(n)};
      answer.status = ladder.solve(problem.M.data(), problem.q.data(), nullptr, answer.z.data(), answer.w.data());
      expect_solution(problem, answer);
      by_rows += ladder.rung()->name == std::string_view("row-scaled");
      for (int i = 0; i < n; ++i) {
        if (std::abs(problem.q[i]) < 1e-6 * problem.q.cwiseAbs().maxCoeff()) continue;  // within the tolerance
        const double z = std::max(0.0, -problem.q[i] / problem.M(i, i));
        EXPECT_NEAR(answer.z[i], z, 1e-8 * z);
      }
    }
  }
  EXPECT_GT(by_rows, 5);
}

TEST(LadderTest, SolvesRowsAndColumnsOfSixteenOrdersOfMagnitude) {
  std::mt19937_64 random(26);
  std::uniform_real_distribution<double> decades(-8, 8);
  for (const int n : {2, 5, 12, 30}) {
    for (int k = 0; k < 50; ++k) {
      Problem problem = testing::positive_definite(random, n);
      if (k % 2) problem.M = RowMatrix(problem.M.triangularView<Eigen::Lower>());
      for (int i = 0; i < n; ++i) {
        const double row = std::pow(10, decades(random));
        problem.M.row(i) *= row;
        problem.q[i] *= row;
        problem.M.col(i) *= std::pow(10, decades(random));
      }
      expect_solution(problem, solve(problem));
    }
  }
}

TEST(LadderTest, NamesTheRungThatDecided) {
  std::mt19937_64 random(27);
  const auto rung_of = [](const Problem& problem) {
    Ladder ladder(problem.n(), {});
    Eigen::VectorXd z(problem.n()), w(problem.n());
    ladder.solve(problem.M.data(), problem.q.data(), nullptr, z.data(), w.data());
    return std::string_view(ladder.rung()->name);
  };
  EXPECT_EQ(rung_of(scalar(-1, 1)), "q >= 0");
  EXPECT_EQ(rung_of(scalar(1, -1)), "lemke");
  EXPECT_EQ(rung_of(scalar(-1, -1)), "Farkas");
  EXPECT_EQ(rung_of(testing::positive_definite(random, 16)), "newton_min");
  EXPECT_EQ(rung_of(testing::murty(16)), "equilibrated");
  EXPECT_EQ(rung_of(bimatrix_game(random, 3, 4)), "enumeration");
  EXPECT_EQ(rung_of(bimatrix_game(random, 20, 20)), "central path");
  Problem unsolvable{RowMatrix(2, 2), Eigen::Vector2d(-1, 0)};
  unsolvable.M << -1, 1, -1, 1;
  EXPECT_EQ(rung_of(unsolvable), "enumeration");
}

TEST(LadderTest, TakesAProductForSymmetricThoughItIsRounded) {
  std::mt19937_64 random(30);
  std::normal_distribution<double> normal;
  for (const bool single : {false, true}) {
    const int n = 40;
    const RowMatrix J = RowMatrix::NullaryExpr(n, n + 10, [&] { return normal(random); });
    const Eigen::VectorXd inverse_mass =
        Eigen::VectorXd::NullaryExpr(n + 10, [&] { return 1 + std::abs(normal(random)); });
    Problem problem{RowMatrix(n, n), Eigen::VectorXd::NullaryExpr(n, [&] { return normal(random); })};
    if (single) {
      const Eigen::MatrixXf weighted = (J * inverse_mass.asDiagonal()).cast<float>();
      problem.M = (weighted * J.transpose().cast<float>()).cast<double>();
    } else {
      problem.M = (J * inverse_mass.asDiagonal()).eval() * J.transpose();
    }
    ASSERT_NE(problem.M, RowMatrix(problem.M.transpose()));
    Settings settings;
    settings.single_precision = single;
    if (single) settings.tolerance = 1e-5;
    Ladder ladder(n, settings);
    Eigen::VectorXd z(n), w(n);
    ASSERT_EQ(ladder.solve(problem.M.data(), problem.q.data(), nullptr, z.data(), w.data()), Status::kSolved);
    EXPECT_STREQ(ladder.rung()->name, "newton_min");
    EXPECT_LE(testing::natural_residual(problem, z), settings.tolerance * problem.q.cwiseAbs().maxCoeff());
    problem.M(3, 7) += 1e-3;
    ASSERT_EQ(ladder.solve(problem.M.data(), problem.q.data(), nullptr, z.data(), w.data()), Status::kSolved);
    EXPECT_STREQ(ladder.rung()->name, "lemke");
  }
}

TEST(LadderTest, LosesFewStepsOnProblemsThatAreNearlySingular) {
  std::mt19937_64 random(32);
  const int n = 24;
  Ladder ladder(n, {}), lemke(n, with(Method::kLemke));
  std::int64_t steps = 0;
  std::int64_t pivots = 0;
  for (int k = 0; k < 100; ++k) {
    const RowMatrix M = testing::low_rank(random, n, n / 2, false) + 1e-9 * RowMatrix::Identity(n, n);
    const Problem problem = testing::plant(random, (M + M.transpose()) / 2).problem;
    Eigen::VectorXd z(n), w(n);
    ASSERT_EQ(ladder.solve(problem.M.data(), problem.q.data(), nullptr, z.data(), w.data()), Status::kSolved);
    EXPECT_LE(testing::natural_residual(problem, z), 1e-9 * problem.q.cwiseAbs().maxCoeff());
    steps += ladder.pivots();
    lemke.solve(problem.M.data(), problem.q.data(), nullptr, z.data(), w.data());
    pivots += lemke.pivots();
  }
  EXPECT_LT(2 * steps, 3 * pivots);
}

}  // namespace lcp::solver::ladder_test
