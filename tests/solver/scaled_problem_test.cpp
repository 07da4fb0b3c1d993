#include "solver/scaled_problem.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace lcp::solver::scaled_problem_test {

void transform(ScaledProblem& problem, bool by_rows) {
  if (by_rows) {
    problem.scale_rows_by_q();
  } else {
    problem.equilibrate();
  }
}

TEST(ScaledProblemTest, BringsQToUnitSizeAndLeavesAUsualMatrix) {
  const double M[] = {4, 1, 1, 3};
  const double q[] = {-48, 6};
  ScaledProblem problem(2);
  ASSERT_TRUE(problem.load(M, q));
  EXPECT_EQ(problem.matrix().M, M);
  EXPECT_EQ(problem.matrix_exponent(), 0);
  EXPECT_EQ(problem.vector_exponent(), 6);
  EXPECT_EQ(problem.q()[0], -0.75);
  EXPECT_EQ(problem.q()[1], 6.0 / 64);
  EXPECT_TRUE(problem.is_exact());
  EXPECT_EQ(std::ldexp(problem.normalized_matrix()[0], problem.normalized_exponent()), 4);
  EXPECT_EQ(problem.normalized_matrix()[0], 0.5);
}

TEST(ScaledProblemTest, ScalesAMatrixWhoseProductsMayOverflow) {
  const double M[] = {1e300};
  const double q[] = {-1e300};
  ScaledProblem problem(1);
  ASSERT_TRUE(problem.load(M, q));
  EXPECT_EQ(std::ldexp(problem.matrix().M[0], problem.matrix_exponent()), 1e300);
  EXPECT_LT(problem.matrix().M[0], 1);
  EXPECT_TRUE(problem.is_exact());
}

TEST(ScaledProblemTest, SaysWhereScalingLosesDigits) {
  const double M[] = {1, 0, 0, 1};
  const double q[] = {-1e308, -std::numeric_limits<double>::denorm_min()};
  ScaledProblem problem(2);
  ASSERT_TRUE(problem.load(M, q));
  EXPECT_FALSE(problem.is_exact());
}

TEST(ScaledProblemTest, RefusesWhatIsNotFinite) {
  ScaledProblem problem(1);
  const double one = 1;
  for (const double bad : {std::nan(""), std::numeric_limits<double>::infinity()}) {
    EXPECT_FALSE(problem.load(&bad, &one));
    EXPECT_FALSE(problem.load(&one, &bad));
  }
}

TEST(ScaledProblemTest, TransformsToUnitsInWhichTheSolutionIsTheSame) {
  const double M[] = {0x1p40, 0, 0, 0x1p-40};
  const double q[] = {-0x1p10, -0x1p-10};
  for (const bool by_rows : {false, true}) {
    ScaledProblem problem(2);
    ASSERT_TRUE(problem.load(M, q));
    transform(problem, by_rows);
    const double* const A = problem.transformed_matrix();
    const double z[] = {-problem.transformed_q()[0] / A[0], -problem.transformed_q()[1] / A[3]};
    double unit_z[2];
    problem.untransform(z, unit_z);
    for (int i = 0; i < 2; ++i) EXPECT_EQ(problem.normalized_matrix()[3 * i] * unit_z[i], -problem.q()[i]) << by_rows;
  }
}

TEST(ScaledProblemTest, TransformsWithoutOverflow) {
  // The row of the second equation is scaled by more than the largest double.
  const double M[] = {0x1p996, 0x1p-57, 0x1p636, 0x1p-41, 0, 0x1p-407, 0x1p653, 0x1p-406, 0x1p287};
  const double q[] = {-0x1p-997, -0x1p-997, 0};
  for (const bool by_rows : {false, true}) {
    ScaledProblem problem(3);
    ASSERT_TRUE(problem.load(M, q));
    transform(problem, by_rows);
    double largest = 0;
    for (int i = 0; i < 3; ++i) largest = std::max(largest, std::abs(problem.transformed_q()[i]));
    EXPECT_TRUE(largest >= 0.5 && largest <= 1) << largest;
    for (int k = 0; k < 9; ++k) EXPECT_LE(std::abs(problem.transformed_matrix()[k]), 1);
  }
}

TEST(ScaledProblemTest, ShiftsTheDiagonalAlone) {
  const double M[] = {0.5, 0.25, 0.25, 0.5};
  const double q[] = {-0.5, -0.5};
  ScaledProblem problem(2);
  ASSERT_TRUE(problem.load(M, q));
  problem.shift_diagonal(0.125);
  for (int k = 0; k < 4; ++k) {
    EXPECT_EQ(problem.transformed_matrix()[k], problem.normalized_matrix()[k] + (k % 3 == 0 ? 0.125 : 0));
  }
}

}  // namespace lcp::solver::scaled_problem_test
