#include "solver/active_set.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "solver/ladder.h"
#include "solver/mixed.h"
#include "support/derivative.h"
#include "support/problems.h"

namespace lcp::solver::active_set_test {

using testing::Derivative;
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
    Derivative derivative(5, 0, false, false);
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
    Derivative derivative(n, 0, false, false);
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
  Derivative derivative(2, 0, false, false);
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
  Derivative derivative(2, 0, false, false);
  derivative.set(matrix, z, w);
  EXPECT_FALSE(derivative.active(0));
  EXPECT_TRUE(derivative.active(1));
}

TEST(ActiveSetTest, KeepsASmallVariableOfARowWithoutQ) {
  // The second row, q_2 = 0, balances z_1 = 1e-17 against z_2; the first hardly sees z_1.
  const double matrix[9] = {1, 1, 0, -1, 1e-17, 1, 0, 1, 1};
  const double z[3] = {1e-17, 1, 0};
  const double w[3] = {0, 0, 0};
  Derivative derivative(3, 0, false, false);
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
    Derivative derivative(3, 0, true, false);
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
      Derivative derivative(2, 0, single_precision, false);
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
  Derivative derivative(2, 0, true, false);
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
      Derivative derivative(n, 0, single_precision, false);
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
  Derivative derivative(1, 0, false, false);
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

// A solved problem whose pairs are z_i > 0, w_i > 0 or tied, by chance.
struct Tied {
  Problem problem;
  Solution solution;
  std::vector<bool> tied;
};

Tied tied_problem(std::mt19937_64& random, int n) {
  std::uniform_int_distribution<int> three(0, 2);
  std::uniform_real_distribution<double> positive(0.5, 2);
  Tied result{testing::positive_definite(random, n), {Eigen::VectorXd::Zero(n), Eigen::VectorXd::Zero(n)}, {}};
  for (int i = 0; i < n; ++i) {
    const int kind = three(random);
    if (kind < 2) (kind == 0 ? result.solution.z : result.solution.w)[i] = positive(random);
    result.tied.push_back(kind == 2);
  }
  result.problem.q = result.solution.w - result.problem.M * result.solution.z;
  return result;
}

TEST(ActiveSetTieTest, AreSeenInAnyUnits) {
  std::mt19937_64 random(21);
  std::uniform_int_distribution<int> exponent(-60, 60);
  for (int k = 0; k < 200; ++k) {
    const int n = 1 + k % 8;
    auto [problem, solution, tied] = tied_problem(random, n);
    for (int i = 0; i < n && k % 2; ++i) {
      const double row = std::ldexp(1, exponent(random));
      const double column = std::ldexp(1, exponent(random));
      problem.M.row(i) *= row;
      problem.M.col(i) *= column;
      solution.w[i] *= row;
      solution.z[i] /= column;
    }
    for (const bool tied_active : {false, true}) {
      Derivative derivative(n, 0, false, tied_active);
      derivative.set(problem.M.data(), solution.z.data(), solution.w.data());
      for (int i = 0; i < n; ++i) {
        EXPECT_EQ(derivative.tied(i), tied[i]);
        EXPECT_EQ(derivative.active(i), solution.z[i] > 0 || (tied[i] && tied_active));
      }
    }
  }
}

TEST(ActiveSetTieTest, AreDistinguishedFromSmallValuesByThePrecisionOfTheEntries) {
  const double matrix[4] = {1, 0, 0.5, 1};
  const double z[2] = {1, 0};
  for (const double w_1 : {0.0, 1e-15, 1e-10, 1e-6, 1e-3}) {
    const double w[2] = {0, w_1};
    for (const bool single_precision : {false, true}) {
      Derivative derivative(2, 0, single_precision, false);
      derivative.set(matrix, z, w);
      EXPECT_FALSE(derivative.tied(0));
      EXPECT_EQ(derivative.tied(1), w_1 < (single_precision ? 1e-5 : 1e-14)) << w_1;
    }
  }
}

TEST(ActiveSetTieTest, AreActiveWhereTheOptionSaysSo) {
  const double matrix[4] = {2, 0, 0, 1};
  const double z[2] = {0, 0};  // q = (0, 1)
  const double w[2] = {0, 1};
  Derivative derivative(2, 0, false, true);
  derivative.set(matrix, z, w);
  EXPECT_TRUE(derivative.active(0) && derivative.tied(0));
  EXPECT_FALSE(derivative.active(1) || derivative.tied(1));
  const double r[2] = {1, 0};
  double dz[2], dw[2], t[2];
  derivative.tangent(r, dz, dw);
  EXPECT_EQ(dz[0], -0.5);
  EXPECT_EQ(dw[0], 0);
  derivative.adjoint(r, r, t);
  EXPECT_EQ(t[0], -0.5);
  EXPECT_EQ(t[1], 0);
}

TEST(ActiveSetTieTest, AlsoWhereAVariableIsRoundOff) {
  const double matrix[4] = {2, 1, 1, 1};  // q = (-1, -1)
  const double z[2] = {1e-17, 1};
  const double w[2] = {0, 0};
  for (const bool tied_active : {false, true}) {
    Derivative derivative(2, 0, false, tied_active);
    derivative.set(matrix, z, w);
    EXPECT_TRUE(derivative.tied(0));
    EXPECT_FALSE(derivative.tied(1));
    EXPECT_EQ(derivative.size(), tied_active ? 2 : 1);
  }
}

TEST(ActiveSetTieTest, GiveTheDerivativesOfTheirTwoSides) {
  // One tie: along r the solution goes one way, along -r the other.
  std::mt19937_64 random(22);
  int checked = 0;
  for (int k = 0; k < 200; ++k) {
    const int n = 5;
    const auto [problem, solution, tied] = tied_problem(random, n);
    if (std::count(tied.begin(), tied.end(), true) != 1) continue;
    Derivative inactive(n, 0, false, false), active(n, 0, false, true);
    inactive.set(problem.M.data(), solution.z.data(), solution.w.data());
    active.set(problem.M.data(), solution.z.data(), solution.w.data());
    const Eigen::VectorXd r = Eigen::VectorXd::LinSpaced(n, -1, 2).array().cos();
    Eigen::VectorXd dz(n), dw(n), other_dz(n), other_dw(n);
    inactive.tangent(r.data(), dz.data(), dw.data());
    active.tangent(r.data(), other_dz.data(), other_dw.data());
    const int tie = static_cast<int>(std::find(tied.begin(), tied.end(), true) - tied.begin());
    const double h = dw[tie] > 0 ? 1e-4 : -1e-4;  // the side on which w rises keeps z at 0
    const Solution rising = solve({problem.M, problem.q + h * r});
    const Solution falling = solve({problem.M, problem.q - h * r});
    EXPECT_LT((dz - (rising.z - solution.z) / h).norm(), 1e-7 * (1 + dz.norm()));
    EXPECT_LT((dw - (rising.w - solution.w) / h).norm(), 1e-7 * (1 + dw.norm()));
    EXPECT_LT((other_dz - (falling.z - solution.z) / -h).norm(), 1e-7 * (1 + other_dz.norm()));
    EXPECT_LT((other_dw - (falling.w - solution.w) / -h).norm(), 1e-7 * (1 + other_dw.norm()));
    ++checked;
  }
  EXPECT_GT(checked, 30);
}

TEST(ActiveSetFreeTest, KeepsEquationsActiveWhateverTheirUnknowns) {
  const double matrix[9] = {1, 0, 0, 0, 1, 0, 0, 0, 1};
  for (const double x : {-3.0, 0.0, 1e-30, 5.0}) {
    const double v[3] = {x, -x, 0};
    const double y[3] = {0, 0, 1};
    for (const bool tied_active : {false, true}) {
      Derivative derivative(3, 2, false, tied_active);
      derivative.set(matrix, v, y);
      EXPECT_TRUE(derivative.active(0) && derivative.active(1));
      EXPECT_FALSE(derivative.active(2));
      EXPECT_FALSE(derivative.tied(0) || derivative.tied(1) || derivative.tied(2));
    }
  }
}

TEST(ActiveSetFreeTest, AgreesWithCentralDifferencesOfMixedProblems) {
  std::mt19937_64 random(23);
  const int k = 2, n = 4, size = k + n;
  int checked = 0;
  for (int repeat = 0; repeat < 50; ++repeat) {
    const Problem problem = testing::positive_definite(random, size);
    Mixed mixed(k, n, {});
    const auto solve_mixed = [&](const Eigen::VectorXd& h) {
      Solution result{Eigen::VectorXd(size), Eigen::VectorXd(size)};
      EXPECT_EQ(mixed.solve(problem.M.data(), h.data(), nullptr, result.z.data(), result.w.data()), Status::kSolved);
      return result;
    };
    const Solution solution = solve_mixed(problem.q);
    if ((solution.z + solution.w).tail(n).minCoeff() < 1e-3) continue;
    Derivative derivative(size, k, false, false);
    derivative.set(problem.M.data(), solution.z.data(), solution.w.data());
    const Eigen::VectorXd r = Eigen::VectorXd::LinSpaced(size, -1, 2);
    Eigen::VectorXd dv(size), dy(size), t(size);
    derivative.tangent(r.data(), dv.data(), dy.data());
    const double step = 1e-6;
    const Solution plus = solve_mixed(problem.q + step * r);
    const Solution minus = solve_mixed(problem.q - step * r);
    EXPECT_LT((dv - (plus.z - minus.z) / (2 * step)).norm(), 1e-6);
    EXPECT_LT((dy - (plus.w - minus.w) / (2 * step)).norm(), 1e-6);
    EXPECT_TRUE(dy.head(k).isZero(0));
    const Eigen::VectorXd g_v = r.array().sin(), g_y = r.array().cos();
    derivative.adjoint(g_v.data(), g_y.data(), t.data());
    EXPECT_NEAR(t.dot(r), g_v.dot(dv) + g_y.dot(dy), 1e-9);
    ++checked;
  }
  EXPECT_GT(checked, 25);
}

}  // namespace lcp::solver::active_set_test
