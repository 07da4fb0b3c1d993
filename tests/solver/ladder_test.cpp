#include "solver/ladder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>

#include "support/problems.h"

namespace lcp::solver::ladder_test {

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

Settings with(Method method, std::optional<std::int64_t> max_pivots = std::nullopt) {
  Settings settings;
  settings.method = method;
  settings.max_pivots = max_pivots;
  return settings;
}

constexpr Method kNamed[] = {Method::kLemke, Method::kEnumeration, Method::kNewtonMin, Method::kCentralPath};

// The answer that a guess leads to, and its cost.
struct GuessedAnswer {
  Answer answer;
  std::int64_t pivots;
  std::string_view rung;
};

GuessedAnswer solve_from(const Eigen::VectorXd& guess, const Problem& problem, const Settings& settings = {}) {
  Ladder ladder(problem.n(), settings);
  Answer answer{Status::kNotFound, Eigen::VectorXd(problem.n()), Eigen::VectorXd(problem.n())};
  answer.status = ladder.solve(problem.M.data(), problem.q.data(), guess.data(), answer.z.data(), answer.w.data());
  return {answer, ladder.pivots(), ladder.rung() == nullptr ? "" : ladder.rung()->name};
}

TEST(LadderGuessTest, NeedsNoPivotsWhereItIsRight) {
  std::mt19937_64 random(21);
  for (int k = 0; k < 100; ++k) {
    const Problem problem = k % 2 ? testing::friction_block(random, 2, 4) : testing::positive_definite(random, 9);
    const Answer expected = solve(problem);
    const auto [answer, pivots, rung] = solve_from(expected.z, problem, with(Method::kAuto, 0));
    expect_solution(problem, answer);
    EXPECT_EQ(pivots, 0);
    EXPECT_TRUE(rung == "q >= 0" || rung == "guess");
    EXPECT_LT((answer.z - expected.z).norm(), 1e-9 * (1 + expected.z.norm()));
  }
}

TEST(LadderGuessTest, ChangesNothingWhereItIsWrong) {
  std::mt19937_64 random(22);
  const double infinity = std::numeric_limits<double>::infinity();
  for (int k = 0; k < 20; ++k) {
    const Problem problem = testing::positive_definite(random, 6);
    const Answer expected = solve(problem);
    if (expected.z.isZero() || expected.w.isZero()) continue;
    const Eigen::VectorXd complement = expected.w;
    for (const double value : {std::nan(""), 0.0, -1.0, 1.0, 1e-300, infinity}) {
      for (const Eigen::VectorXd& guess : {complement, Eigen::VectorXd(Eigen::VectorXd::Constant(6, value))}) {
        const auto [answer, pivots, rung] = solve_from(guess, problem);
        EXPECT_GT(pivots, 0);
        EXPECT_TRUE(rung != "q >= 0" && rung != "guess");
        EXPECT_EQ(answer.z, expected.z);
        for (const Method method : kNamed) expect_solution(problem, solve_from(guess, problem, with(method)).answer);
      }
    }
  }
}

TEST(LadderGuessTest, MakesNoUnsolvableProblemSolvable) {
  for (const double value : {std::nan(""), 0.0, 1.0}) {
    const Eigen::VectorXd guess = Eigen::VectorXd::Constant(1, value);
    const Answer answer = solve_from(guess, scalar(-1, -1)).answer;
    EXPECT_EQ(answer.status, Status::kInfeasible);
    expect_nan(answer);
    EXPECT_EQ(solve_from(guess, scalar(std::nan(""), -1)).answer.status, Status::kBadInput);
  }
}

TEST(LadderGuessTest, DecidesWhatASingularBasisLeavesOpen) {
  const Problem problem{RowMatrix::Ones(2, 2), Eigen::Vector2d(-1, -1)};
  for (const double share : {0.25, 0.5, 0.75}) {
    const auto [answer, pivots, rung] = solve_from(Eigen::Vector2d(share, 1 - share), problem);
    expect_solution(problem, answer);
    EXPECT_EQ(pivots, 0);
    EXPECT_LT((answer.z - Eigen::Vector2d(share, 1 - share)).norm(), 1e-15);
  }
}

TEST(LadderMethodTest, EachSolvesDefiniteProblems) {
  std::mt19937_64 random(23);
  for (const Method method : kNamed) {
    for (const int n : {1, 2, 5, 10}) {
      for (int k = 0; k < 10; ++k) {
        const Problem problem = testing::positive_definite(random, n);
        expect_solution(problem, solve(problem, with(method)));
        const double scale = 1e-250;
        expect_solution({problem.M * scale, problem.q * scale},
                        solve({problem.M * scale, problem.q * scale}, with(method)));
      }
    }
    EXPECT_EQ(solve({RowMatrix(0, 0), Eigen::VectorXd(0)}, with(method)).status, Status::kSolved);
    EXPECT_EQ(solve(scalar(-1, 2), with(method)).z[0], 0);
  }
}

TEST(LadderMethodTest, EachRunsWithoutTheOthers) {
  Problem singular{RowMatrix(2, 2), Eigen::Vector2d(-1, 0)};
  singular.M << 0, 1, 0, 0;  // z_1 >= 1: at a singular basis
  expect_solution(singular, solve(singular, with(Method::kEnumeration)));
  EXPECT_EQ(solve(singular, with(Method::kNewtonMin)).status, Status::kNotFound);
  const Problem murty = testing::murty(16);
  EXPECT_EQ(solve(murty, with(Method::kLemke)).status, Status::kPivotLimit);
  expect_solution(murty, solve(murty, with(Method::kNewtonMin)));
}

// A rung may end with a solution that is none any more once z is rounded to float; others may have one that is.
TEST(LadderMethodTest, AutoSolvesInFloatWhatEnumerationDoes) {
  std::mt19937_64 random(1);
  std::normal_distribution<double> normal;
  const auto power = [&](int least, int most) {
    return std::pow(10.0, std::uniform_int_distribution(least, most)(random));
  };
  Settings any;
  any.single_precision = true;
  any.tolerance = default_tolerance(true);
  Settings enumeration = any;
  enumeration.method = Method::kEnumeration;
  int solved = 0;
  for (int k = 0; k < 3000; ++k) {
    const int n = 7 + k % 2;
    const int rank = std::uniform_int_distribution(1, n)(random);
    const auto entry = [&] { return normal(random); };
    RowMatrix A = RowMatrix::NullaryExpr(n, rank, entry);
    for (int i = 0; i < n; ++i) A.row(i) *= power(-4, 3);
    const RowMatrix B = k % 4 < 2 ? RowMatrix(A.transpose()) : RowMatrix::NullaryExpr(rank, n, entry);
    const double noise = power(-8, -3);
    Problem problem{A * B + noise * RowMatrix::NullaryExpr(n, n, entry), Eigen::VectorXd::NullaryExpr(n, entry)};
    for (int i = 0; i < n; ++i) problem.q[i] *= power(-5, 2);
    problem.M = problem.M.cast<float>().cast<double>();
    problem.q = problem.q.cast<float>().cast<double>();
    if (solve(problem, enumeration).status != Status::kSolved) continue;
    ++solved;
    EXPECT_EQ(solve(problem, any).status, Status::kSolved) << problem.M << "\n" << problem.q;
  }
  EXPECT_GT(solved, 500);
}

TEST(LadderMethodTest, NoneProvesInfeasibility) {
  for (const Method method : {Method::kLemke, Method::kEnumeration, Method::kCentralPath}) {
    EXPECT_EQ(solve(scalar(-1, -1), with(method)).status, Status::kNotFound);
    expect_nan(solve(scalar(-1, -1), with(method)));
  }
  EXPECT_EQ(solve(scalar(0, -1), with(Method::kNewtonMin)).status, Status::kNotFound);
  EXPECT_EQ(solve(scalar(-1, -1), with(Method::kNewtonMin)).status, Status::kPivotLimit);  // z and w in turn
}

TEST(LadderMethodTest, EachReportsBadInput) {
  for (const Method method : kNamed) {
    EXPECT_EQ(solve(scalar(std::nan(""), -1), with(method)).status, Status::kBadInput);
    EXPECT_EQ(solve(scalar(1, std::numeric_limits<double>::infinity()), with(method)).status, Status::kBadInput);
  }
}

// Costs in [0.1, 1], q = -e [Cottle, Pang, Stone, 2009, sec. 1.4, 4.4.23].
Problem game(std::mt19937_64& random, int rows, int columns) {
  std::uniform_real_distribution<double> cost(0.1, 1);
  Problem problem{RowMatrix::Zero(rows + columns, rows + columns), -Eigen::VectorXd::Ones(rows + columns)};
  problem.M.topRightCorner(rows, columns) = RowMatrix::NullaryExpr(rows, columns, [&] { return cost(random); });
  problem.M.bottomLeftCorner(columns, rows) = RowMatrix::NullaryExpr(columns, rows, [&] { return cost(random); });
  return problem;
}

TEST(LadderTest, SolvesBimatrixGamesOnWhichLemkeEndsOnARay) {
  std::mt19937_64 random(24);
  int rays = 0;
  for (const auto& [rows, columns] :
       {std::pair(3, 4), std::pair(6, 6), std::pair(10, 10), std::pair(5, 15), std::pair(20, 20)}) {
    for (int k = 0; k < 20; ++k) {
      const Problem problem = game(random, rows, columns);
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
      Answer answer{Status::kNotFound, Eigen::VectorXd(n), Eigen::VectorXd(n)};
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
  EXPECT_EQ(rung_of(game(random, 3, 4)), "enumeration");
  EXPECT_EQ(rung_of(game(random, 20, 20)), "central path");
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

TEST(LadderGuessTest, TakesOneFactorisationOfALargeDefiniteProblem) {
  std::mt19937_64 random(31);
  const Problem problem = testing::positive_definite(random, 40);
  Ladder ladder(40, {});
  Eigen::VectorXd z(40), w(40), guess;
  ASSERT_EQ(ladder.solve(problem.M.data(), problem.q.data(), nullptr, z.data(), w.data()), Status::kSolved);
  EXPECT_GT(ladder.pivots(), 0);
  guess = z;
  ASSERT_EQ(ladder.solve(problem.M.data(), problem.q.data(), guess.data(), z.data(), w.data()), Status::kSolved);
  EXPECT_STREQ(ladder.rung()->name, "guess");
  EXPECT_EQ(ladder.pivots(), 0);
  guess.setOnes();
  ASSERT_EQ(ladder.solve(problem.M.data(), problem.q.data(), guess.data(), z.data(), w.data()), Status::kSolved);
  EXPECT_STREQ(ladder.rung()->name, "newton_min");
}

TEST(LadderMethodTest, NewtonMinSolvesSymmetricProblemsThatAreNotDefinite) {
  Problem problem{RowMatrix(2, 2), Eigen::Vector2d(-1, -1)};
  problem.M << 1, 2, 2, 1;
  expect_solution(problem, solve(problem, with(Method::kNewtonMin)));
}

TEST(LadderBudgetTest, IsKeptByEveryMethod) {
  std::mt19937_64 random(28);
  const Problem problem = testing::positive_definite(random, 10);
  for (const Method method : kNamed) {
    Ladder free(10, with(method));
    Eigen::VectorXd z(10), w(10);
    ASSERT_EQ(free.solve(problem.M.data(), problem.q.data(), nullptr, z.data(), w.data()), Status::kSolved);
    const std::int64_t needed = free.pivots();
    EXPECT_GT(needed, 0);
    for (const std::int64_t budget : {std::int64_t{0}, needed / 2, needed - 1, needed, needed + 1}) {
      Ladder ladder(10, with(method, budget));
      const Status status = ladder.solve(problem.M.data(), problem.q.data(), nullptr, z.data(), w.data());
      EXPECT_EQ(status, budget < needed ? Status::kPivotLimit : Status::kSolved);
      EXPECT_EQ(ladder.pivots(), std::min(budget, needed));
      EXPECT_EQ(z.array().isNaN().any(), budget < needed);
    }
  }
}

TEST(LadderBudgetTest, MayExceedTheUsualOneOfAMethod) {
  const Problem problem = testing::murty(12);  // 2^12 pivots
  EXPECT_EQ(solve(problem, with(Method::kLemke)).status, Status::kPivotLimit);
  expect_solution(problem, solve(problem, with(Method::kLemke, 5000)));
}

TEST(LadderBudgetTest, IsOneForAllRungs) {
  std::mt19937_64 random(29);
  Problem unsolvable{RowMatrix::Zero(12, 12), -Eigen::VectorXd::Ones(12)};
  for (int i = 0; i < 12; i += 2) unsolvable.M.block(i, i, 2, 2) << -2, 1, -2, 2;
  for (const Problem& problem : {game(random, 10, 10), unsolvable, testing::murty(14)}) {
    const int n = problem.n();
    Ladder free(n, {});
    Eigen::VectorXd z(n), w(n);
    const Status status = free.solve(problem.M.data(), problem.q.data(), nullptr, z.data(), w.data());
    const std::int64_t needed = free.pivots();
    EXPECT_GT(needed, 0);
    for (std::int64_t budget = 0; budget < needed; budget += 1 + needed / 50) {
      Ladder ladder(n, with(Method::kAuto, budget));
      EXPECT_EQ(ladder.solve(problem.M.data(), problem.q.data(), nullptr, z.data(), w.data()), Status::kPivotLimit);
      EXPECT_EQ(ladder.pivots(), budget);
    }
    Ladder ladder(n, with(Method::kAuto, needed));
    EXPECT_EQ(ladder.solve(problem.M.data(), problem.q.data(), nullptr, z.data(), w.data()), status);
    EXPECT_EQ(ladder.pivots(), needed);
  }
}

}  // namespace lcp::solver::ladder_test
