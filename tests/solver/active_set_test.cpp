#include "solver/active_set.h"

#include <gtest/gtest.h>

#include <cmath>

#include "solver/ladder.h"
#include "support/problems.h"

namespace lcp::solver {
namespace {

using testing::Problem;
using testing::RowMatrix;

struct Solution {
  Eigen::VectorXd z, w;
};

Solution solve(const Problem& problem) {
  Solution solution{Eigen::VectorXd(problem.n()), Eigen::VectorXd(problem.n())};
  Ladder ladder(problem.n(), {});
  EXPECT_EQ(ladder.solve(problem.M.data(), problem.q.data(), nullptr, solution.z.data(), solution.w.data()),
            Status::kSolved);
  return solution;
}

TEST(ActiveSetTest, AgreesWithCentralDifferences) {
  std::mt19937_64 random(2);
  for (int k = 0; k < 50; ++k) {
    const Problem problem = testing::positive_definite(random, 5);
    const Solution solution = solve(problem);
    if ((solution.z + solution.w).minCoeff() < 1e-3) continue;  // too near a tie for the step below
    ActiveSet derivative(5, 0, false, false);
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
    ActiveSet derivative(n, 0, false, false);
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
  const double matrix[4] = {2, 0, 0, 1};
  const double z[2] = {0, 0};  // q = (0, 1)
  const double w[2] = {0, 1};
  ActiveSet derivative(2, 0, false, false);
  derivative.set(matrix, z, w);
  EXPECT_FALSE(derivative.active(0));
  const double r[2] = {1, 0};
  double dz[2], dw[2];
  derivative.tangent(r, dz, dw);
  EXPECT_EQ(dz[0], 0);
  EXPECT_EQ(dw[0], 1);
}

TEST(ActiveSetTest, TakesTheRoundOffOfADegenerateVariableAsATie) {
  // q = (-1, -1): z = (0, 1) is degenerate in its first pair, whose z a solver may leave at 1e-17.
  const double matrix[4] = {2, 1, 1, 1};
  const double z[2] = {1e-17, 1};
  const double w[2] = {0, 0};
  ActiveSet derivative(2, 0, false, false);
  derivative.set(matrix, z, w);
  EXPECT_FALSE(derivative.active(0));
  EXPECT_TRUE(derivative.active(1));
}

TEST(ActiveSetTest, KeepsASmallVariableOfARowWithoutQ) {
  // The second row, q_2 = 0, balances z_1 = 1e-17 against z_2; the first hardly sees z_1.
  const double matrix[9] = {1, 1, 0, -1, 1e-17, 1, 0, 1, 1};
  const double z[3] = {1e-17, 1, 0};
  const double w[3] = {0, 0, 0};
  ActiveSet derivative(3, 0, false, false);
  derivative.set(matrix, z, w);
  EXPECT_TRUE(derivative.active(0));
}

TEST(ActiveSetTest, SlidesAtAnyMassInSinglePrecision) {
  // A regular point: the block slides with gamma = |v| while lambda = mu m g, in units that differ by 1e-4 .. 1e4.
  for (const double mass : {1e-4, 1e-2, 1.0, 1e2, 1e4}) {
    const double c = 1e-3 / mass;
    const double limit = 4.905 * mass;
    const double v = 0.0059;
    Problem problem{RowMatrix(3, 3), Eigen::Vector3d(-v, v, limit)};
    problem.M << c, -c, 1, -c, c, 1, -1, -1, 0;
    const Solution solution = solve(problem);
    ActiveSet derivative(3, 0, true, false);
    derivative.set(problem.M.data(), solution.z.data(), solution.w.data());
    const double g_z[3] = {0, 0, 1};
    const double zero[3] = {0, 0, 0};
    double t[3];
    derivative.adjoint(g_z, zero, t);
    EXPECT_NEAR(t[0], -1, 1e-6) << mass;
    EXPECT_NEAR(t[2], -c, 1e-6 * c) << mass;
  }
}

TEST(ActiveSetTest, SeesActiveUnknownsOfOtherUnits) {
  for (const double unit : {1e-20, 1e-6, 1e6, 1e20}) {
    // Rows and columns in other units: diag(1, unit) z + (-1, -unit / 2), and diag(unit, 1) with z_0 = 1 / unit.
    const double rows[4] = {1, 0, 0, unit};
    const double z[2] = {1, 0.5};
    const double zero[2] = {0, 0};
    for (const bool single_precision : {false, true}) {
      ActiveSet derivative(2, 0, single_precision, false);
      derivative.set(rows, z, zero);
      EXPECT_TRUE(derivative.active(0) && derivative.active(1));
      const double g_z[2] = {1, 1};
      double t[2];
      derivative.adjoint(g_z, zero, t);
      EXPECT_DOUBLE_EQ(t[0], -1);
      EXPECT_DOUBLE_EQ(t[1], -1 / unit);
    }
  }
}

TEST(ActiveSetTest, CountsWhatIsSingularInThePrecisionOfTheEntriesAsSingular) {
  // Rank one, but for the rounding of its entries to float.
  const double matrix[4] = {static_cast<float>(0.1), static_cast<float>(0.3), static_cast<float>(0.3),
                            static_cast<float>(0.9)};
  const double ones[2] = {1, 1};
  const double zero[2] = {0, 0};
  ActiveSet derivative(2, 0, true, false);
  derivative.set(matrix, ones, zero);
  double t[2];
  derivative.adjoint(ones, zero, t);
  EXPECT_NEAR(t[0], -0.4, 1e-5);
  EXPECT_NEAR(t[1], -1.2, 1e-5);
}

TEST(ActiveSetTest, KeepsGradientsOfRedundantContactsSmall) {
  // J A^-1 J' of four corners in a plane, whose rank is three: no gradient may be the inverse of a rounding error.
  std::mt19937_64 random(8);
  for (const bool single_precision : {false, true}) {
    for (int k = 0; k < 500; ++k) {
      Problem problem = testing::friction_block(random, 4, 8);
      if (single_precision) {
        problem.M = problem.M.cast<float>().cast<double>();
        problem.q = problem.q.cast<float>().cast<double>();
      }
      const int n = problem.n();
      const Solution solution = solve(problem);
      ActiveSet derivative(n, 0, single_precision, false);
      derivative.set(problem.M.data(), solution.z.data(), solution.w.data());
      const Eigen::VectorXd g = Eigen::VectorXd::Ones(n);
      Eigen::VectorXd t(n);
      derivative.adjoint(g.data(), g.data(), t.data());
      EXPECT_LT(t.cwiseAbs().maxCoeff(), 1e5) << k;
    }
  }
}

TEST(ActiveSetTest, AnswersAnUnsolvedElementWithZeroOrNaN) {
  const double M = -1;
  const double nan = std::nan("");
  ActiveSet derivative(1, 0, false, false);
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
