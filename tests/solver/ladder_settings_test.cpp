// What the settings of the ladder do: the guess, the methods and the budget.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string_view>

#include "solver/rungs.h"
#include "support/ladder.h"

namespace lcp::solver::ladder_settings_test {

using testing::bimatrix_game;
using testing::expect_nan;
using testing::expect_solution;
using testing::LadderAnswer;
using testing::Problem;
using testing::RowMatrix;
using testing::scalar;
using testing::solve;
using testing::with;

constexpr Method kNamed[] = {Method::kLemke, Method::kEnumeration, Method::kNewtonMin, Method::kCentralPath};

// The answer that a guess leads to, and its cost.
struct GuessedAnswer {
  LadderAnswer answer;
  std::int64_t pivots;
  std::string_view rung;
};

GuessedAnswer solve_from(const Eigen::VectorXd& guess, const Problem& problem, const Settings& settings = {}) {
  Ladder ladder(problem.n(), settings);
  LadderAnswer answer{Status::kNotFound, Eigen::VectorXd(problem.n()), Eigen::VectorXd(problem.n())};
  answer.status = ladder.solve(problem.M.data(), problem.q.data(), guess.data(), answer.z.data(), answer.w.data());
  return {answer, ladder.pivots(), ladder.rung() == nullptr ? "" : ladder.rung()->name};
}

TEST(LadderGuessTest, NeedsNoPivotsWhereItIsRight) {
  std::mt19937_64 random(21);
  for (int k = 0; k < 100; ++k) {
    const Problem problem = k % 2 ? testing::friction_block(random, 2, 4) : testing::positive_definite(random, 9);
    const LadderAnswer expected = solve(problem);
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
    const LadderAnswer expected = solve(problem);
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
    const LadderAnswer answer = solve_from(guess, scalar(-1, -1)).answer;
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
  EXPECT_EQ(solve(scalar(-1, -1), with(Method::kNewtonMin)).status, Status::kNotFound);  // z and w in turn
}

TEST(LadderMethodTest, EachReportsBadInput) {
  for (const Method method : kNamed) {
    EXPECT_EQ(solve(scalar(std::nan(""), -1), with(method)).status, Status::kBadInput);
    EXPECT_EQ(solve(scalar(1, std::numeric_limits<double>::infinity()), with(method)).status, Status::kBadInput);
  }
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

TEST(LadderBudgetTest, NobodyReachesALimitThatIsNotSet) {
  std::mt19937_64 random(33);
  std::uniform_int_distribution<int> entry(-3, 3);
  for (int k = 0; k < 60; ++k) {
    const int n = k % 3 == 0 ? 12 : 10;
    const Problem problem{RowMatrix::NullaryExpr(n, n, [&] { return entry(random); }),
                          Eigen::VectorXd::NullaryExpr(n, [&] { return entry(random); })};
    const Status status = solve(problem).status;
    EXPECT_NE(status, Status::kPivotLimit);
    EXPECT_EQ(solve({problem.M * 0x1p-64, problem.q}).status, status);
    EXPECT_EQ(solve_from(Eigen::VectorXd::Zero(n), problem).answer.status, status);
    EXPECT_EQ(solve(problem, with(Method::kAuto, 1'000'000'000)).status, status);
    if (n > 10) continue;
    for (const Method method : kNamed) EXPECT_NE(solve(problem, with(method)).status, Status::kPivotLimit);
  }
}

TEST(LadderBudgetTest, IsOneForAllRungs) {
  std::mt19937_64 random(29);
  Problem unsolvable{RowMatrix::Zero(12, 12), -Eigen::VectorXd::Ones(12)};
  for (int i = 0; i < 12; i += 2) unsolvable.M.block(i, i, 2, 2) << -2, 1, -2, 2;
  for (const Problem& problem : {bimatrix_game(random, 10, 10), unsolvable, testing::murty(14)}) {
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

}  // namespace lcp::solver::ladder_settings_test
