// All LCPs of a grid of integers, and many random ones, against their exact answers. Short tests skip most of them.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <ostream>
#include <random>

#include "solver/ladder.h"
#include "support/claims.h"
#include "support/effort.h"
#include "support/exact.h"

namespace lcp::testing::exhaustive_test {

void expect_truth(const Problem& problem) {
  const Truth truth = truth_of(problem);
  const Answer answer = solve(problem);
  const Status expected = truth.solvable ? Status::kSolved : truth.feasible ? Status::kNotFound : Status::kInfeasible;
  EXPECT_EQ(answer.status, expected) << describe(problem, answer);
  EXPECT_EQ(answer_error(problem, {}, answer), "") << describe(problem, answer);
}

// The problem whose entries, less `low`, are the digits of `code` in base `base`.
Problem decode(int n, int low, int base, std::int64_t code) {
  Problem problem{RowMatrix(n, n), Eigen::VectorXd(n)};
  const auto digit = [&] {
    const auto value = static_cast<double>(low + code % base);
    code /= base;
    return value;
  };
  for (double& x : problem.M.reshaped()) x = digit();
  for (double& x : problem.q) x = digit();
  return problem;
}

void expect_truth_of_all(int n, int largest) {
  const int base = 2 * largest + 1;
  const auto count = static_cast<std::int64_t>(std::llround(std::pow(base, n * (n + 1))));
  const int stride = long_tests() ? 1 : 23;  // no divisor of a base, so that every entry takes all its values
  for (std::int64_t code = 0; code < count && !::testing::Test::HasFailure(); code += stride) {
    expect_truth(decode(n, -largest, base, code));
  }
}

TEST(ExhaustiveTest, AnswersEveryProblemOfOneUnknownUpTo32) { expect_truth_of_all(1, 32); }

TEST(ExhaustiveTest, AnswersEveryProblemOfTwoUnknownsUpTo3) { expect_truth_of_all(2, 3); }

TEST(ExhaustiveTest, AnswersEveryProblemOfThreeUnknownsUpTo1) { expect_truth_of_all(3, 1); }

struct Grid {
  int n, largest, count;
  double zeros;  // probability that an entry is 0
};

std::ostream& operator<<(std::ostream& out, const Grid& grid) {
  return out << "n" << grid.n << "_up_to_" << grid.largest;
}

class RandomGridTest : public ::testing::TestWithParam<Grid> {};

TEST_P(RandomGridTest, IsAnsweredTruly) {
  const Grid grid = GetParam();
  std::mt19937_64 random(static_cast<unsigned>(100 * grid.n + grid.largest));
  std::uniform_int_distribution<int> entry(-grid.largest, grid.largest);
  std::bernoulli_distribution zero(grid.zeros);
  const auto draw = [&] { return zero(random) ? 0 : entry(random); };
  for (int k = 0; k < effort(grid.count) && !HasFailure(); ++k) {
    expect_truth({RowMatrix::NullaryExpr(grid.n, grid.n, draw), Eigen::VectorXd::NullaryExpr(grid.n, draw)});
  }
}

// Few distinct entries and many zeros make singular bases, and with them the hard cases.
INSTANTIATE_TEST_SUITE_P(Grids, RandomGridTest,
                         ::testing::Values(Grid{3, 2, 20000, 0}, Grid{3, 3, 20000, 0.4}, Grid{3, 32, 20000, 0},
                                           Grid{4, 1, 20000, 0}, Grid{4, 2, 10000, 0.5}, Grid{4, 9, 10000, 0},
                                           Grid{5, 1, 5000, 0.2}, Grid{5, 2, 5000, 0.6}, Grid{5, 9, 5000, 0.3}),
                         ::testing::PrintToStringParamName());

TEST(ExhaustiveTest, AnswersDoNotDependOnTheUnits) {
  std::mt19937_64 random(7);
  std::uniform_int_distribution<int> entry(-2, 2);
  for (int k = 0; k < effort(5000); ++k) {
    const int n = 2 + k % 3;
    const Problem problem{RowMatrix::NullaryExpr(n, n, [&] { return entry(random); }),
                          Eigen::VectorXd::NullaryExpr(n, [&] { return entry(random); })};
    const Status expected = solve(problem).status;
    for (const auto& [M, q] : {std::pair{0x1p900, 0x1p900}, {0x1p-900, 0x1p-900}, {0x1p400, 1.0}, {1.0, 0x1p-400}}) {
      const Problem scaled{problem.M * M, problem.q * q};
      const Answer answer = solve(scaled);
      EXPECT_EQ(answer.status, expected) << describe(scaled, answer);
      EXPECT_EQ(answer_error(scaled, {}, answer), "") << describe(scaled, answer);
    }
  }
}

// A change of the units of rows and columns does not change feasibility. It may change which solutions are within the
// tolerance.
TEST(ExhaustiveTest, NoUnitsMakeAFeasibleProblemInfeasible) {
  std::mt19937_64 random(8);
  std::uniform_int_distribution<int> entry(-2, 2);
  for (int k = 0; k < effort(20000); ++k) {
    const int n = 1 + k % 5;
    Problem problem{RowMatrix::NullaryExpr(n, n, [&] { return entry(random); }),
                    Eigen::VectorXd::NullaryExpr(n, [&] { return entry(random); })};
    const Truth truth = truth_of(problem);
    std::uniform_int_distribution<int> exponent(-(k % 500), k % 500);
    for (int i = 0; i < n; ++i) {
      const double row = std::ldexp(1, exponent(random));
      problem.M.row(i) *= row;
      problem.q[i] *= row;
      problem.M.col(i) *= std::ldexp(1, exponent(random));
    }
    const Answer answer = solve(problem);
    EXPECT_FALSE(truth.feasible && answer.status == Status::kInfeasible) << describe(problem, answer);
    EXPECT_EQ(answer_error(problem, {}, answer), "") << describe(problem, answer);
  }
}

}  // namespace lcp::testing::exhaustive_test
