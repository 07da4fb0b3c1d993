#include "solver/central_path.h"

#include <gtest/gtest.h>

#include <Eigen/LU>
#include <cmath>
#include <optional>
#include <vector>

#include "solver/ladder.h"
#include "solver/mixed.h"
#include "support/problems.h"

namespace lcp::solver::central_path_test {

using testing::Problem;
using testing::RowMatrix;
using testing::scalar;

struct Point {
  Eigen::VectorXd z, w;
};

Eigen::VectorXd solution(const Problem& problem) {
  Eigen::VectorXd z(problem.n()), w(problem.n());
  Ladder ladder(problem.n(), {});
  EXPECT_EQ(ladder.solve(problem.M.data(), problem.q.data(), nullptr, z.data(), w.data()), Status::kSolved);
  return z;
}

std::optional<Point> point(const Problem& problem, const Eigen::VectorXd& z_0, double kappa, int free = 0) {
  CentralPath path(problem.n(), free);
  Point p{Eigen::VectorXd(problem.n()), Eigen::VectorXd(problem.n())};
  if (!path.point(problem.M.data(), problem.q.data(), z_0.data(), kappa, p.z.data(), p.w.data())) return std::nullopt;
  return p;
}

void expect_on_path(const Problem& problem, const std::optional<Point>& p, double kappa, int free = 0) {
  ASSERT_TRUE(p.has_value());
  const Eigen::VectorXd error = problem.M * p->z + problem.q - p->w;
  const Eigen::VectorXd size = problem.M.cwiseAbs() * p->z.cwiseAbs() + problem.q.cwiseAbs() + p->w;
  EXPECT_LE(error.cwiseAbs().maxCoeff(), 1e-12 * size.maxCoeff());
  for (int i = 0; i < problem.n(); ++i) {
    if (i < free) {
      EXPECT_EQ(p->w[i], 0);
      continue;
    }
    EXPECT_GT(p->z[i], 0);
    EXPECT_GT(p->w[i], 0);
    EXPECT_NEAR(p->z[i] * p->w[i] / kappa, 1, 1e-15);
  }
}

// A block that slides at v with slack gamma = |v|: positive semidefinite, two solutions where it sticks.
Problem sliding_block(double c, double v, double limit) {
  Problem problem{RowMatrix(3, 3), Eigen::Vector3d(v, -v, limit)};
  problem.M << c, -c, 1, -c, c, 1, -1, -1, 0;
  return problem;
}

// The optimality conditions of min x'Q x / 2 + c'x, E x = b, x >= 0: [0 E; -E' Q] (y, x) + (-b, c), y free.
Problem quadratic_program(std::mt19937_64& random, int equations, int n) {
  std::normal_distribution<double> normal;
  const Problem objective = testing::positive_definite(random, n);
  const Eigen::MatrixXd E = Eigen::MatrixXd::NullaryExpr(equations, n, [&] { return normal(random); });
  const Eigen::VectorXd x = Eigen::VectorXd::NullaryExpr(n, [&] { return std::abs(normal(random)); });
  const int size = equations + n;
  Problem problem{RowMatrix::Zero(size, size), Eigen::VectorXd(size)};
  problem.M.topRightCorner(equations, n) = E;
  problem.M.bottomLeftCorner(n, equations) = -E.transpose();
  problem.M.bottomRightCorner(n, n) = objective.M;
  problem.q << -(E * x), objective.q;
  return problem;
}

TEST(CentralPathPointTest, IsTheRootOfAQuadraticEquationForOneUnknown) {
  for (const double kappa : {1e-12, 1e-6, 1e-2, 1.0, 1e2}) {
    for (const double q : {-3.0, -1e-3, 0.0, 1e-3, 3.0}) {
      const auto p = point(scalar(2, q), Eigen::VectorXd::Constant(1, std::max(0.0, -q / 2)), kappa);
      expect_on_path(scalar(2, q), p, kappa);
      const double root = std::sqrt(q * q + 8 * kappa);
      const double z = q < 0 ? (root - q) / 4 : 2 * kappa / (q + root);
      EXPECT_NEAR(p->z[0], z, 1e-12 * z);
    }
  }
}

TEST(CentralPathPointTest, LiesOnThePathOfPositiveDefiniteProblemsOfAnyScale) {
  std::mt19937_64 random(1);
  for (const int n : {1, 2, 5, 12}) {
    const Problem problem = testing::positive_definite(random, n);
    const Eigen::VectorXd z_0 = solution(problem);
    for (const double of_M : {1e-200, 1e-100, 1.0, 1e100, 1e200}) {
      for (const double of_q : {1e-200, 1e-100, 1.0, 1e100, 1e200}) {
        const Problem scaled{problem.M * of_M, problem.q * of_q};
        for (const double share : {1e-12, 1e-8, 1e-4, 1e-2, 1.0, 1e2}) {
          const double kappa = of_q / of_M * share * of_q;
          if (!(kappa > 1e-290 && kappa < 1e290)) continue;
          expect_on_path(scaled, point(scaled, z_0 * (of_q / of_M), kappa), kappa);
        }
      }
    }
  }
}

TEST(CentralPathPointTest, LiesOnThePathWhateverKappaIsBesideTheProblem) {
  std::mt19937_64 random(2);
  const Problem problem = testing::positive_definite(random, 5);
  const Eigen::VectorXd z_0 = solution(problem);
  for (const double of_M : {1e-200, 1e-60, 1.0, 1e60, 1e200}) {
    for (const double of_q : {1e-60, 1e-20, 1.0, 1e20, 1e60}) {
      const Problem scaled{problem.M * of_M, problem.q * of_q};
      for (const double kappa : {1e-12, 1e-6, 1.0, 1e2}) {
        const double share = kappa * of_M / of_q / of_q;
        if (share < 1e-250) continue;  // a pair's smaller member would be below the smallest double
        expect_on_path(scaled, point(scaled, z_0 * (of_q / of_M), kappa), kappa);
      }
    }
  }
}

TEST(CentralPathPointTest, LiesOnThePathWhateverTheUnitsOfRowsAndColumns) {
  std::mt19937_64 random(9);
  std::uniform_int_distribution<int> exponent(-20, 20);
  for (int k = 0; k < 100; ++k) {
    const int n = 1 + k % 6;
    Problem problem = testing::positive_definite(random, n);
    Eigen::VectorXd z_0 = solution(problem);
    for (int i = 0; i < n; ++i) {
      const double row = std::ldexp(1, exponent(random));
      const double column = std::ldexp(1, exponent(random));
      problem.M.row(i) *= row;
      problem.q[i] *= row;
      problem.M.col(i) *= column;
      z_0[i] /= column;
    }
    for (const double kappa : {1e-12, 1e-6, 1.0, 1e2}) expect_on_path(problem, point(problem, z_0, kappa), kappa);
  }
}

TEST(CentralPathPointTest, LiesOnThePathOfASlidingBlockInAnyUnits) {
  for (const double c : {1e-6, 1e-3, 1.0, 1e3, 1e6}) {
    for (const double v : {0.0, 1e-3, 0.5, -2.0, 30.0}) {
      for (const double limit : {0.1, 5.0, 1e3}) {
        const Problem problem = sliding_block(c, v, limit);
        const Eigen::VectorXd z_0 = solution(problem);
        for (const double kappa : {1e-12, 1e-8, 1e-4, 1e-2, 1.0, 1e2}) {
          SCOPED_TRACE(::testing::Message() << c << " " << v << " " << limit << " " << kappa);
          expect_on_path(problem, point(problem, z_0, kappa), kappa);
        }
      }
    }
  }
}

TEST(CentralPathPointTest, TendsToTheSolution) {
  std::mt19937_64 random(3);
  for (int k = 0; k < 50; ++k) {
    const Problem problem = testing::positive_definite(random, 6);
    const Eigen::VectorXd z_0 = solution(problem);
    double before = 1e300;
    for (const double kappa : {1e-2, 1e-5, 1e-8, 1e-11}) {
      const auto p = point(problem, z_0, kappa);
      expect_on_path(problem, p, kappa);
      EXPECT_LT((p->z - z_0).norm(), before);
      before = (p->z - z_0).norm();
    }
    EXPECT_LT(before, 1e-4);  // sqrt(kappa) / 0.1 at a tie
  }
}

TEST(CentralPathPointTest, FollowsTheSolutionItIsGiven) {
  const Problem problem = scalar(-1, 3);  // z (3 - z) = kappa
  const auto near_zero = point(problem, Eigen::VectorXd::Constant(1, 0), 1e-3);
  const auto near_three = point(problem, Eigen::VectorXd::Constant(1, 3), 1e-3);
  expect_on_path(problem, near_zero, 1e-3);
  expect_on_path(problem, near_three, 1e-3);
  EXPECT_LT(near_zero->z[0], 1e-2);
  EXPECT_GT(near_three->z[0], 2.99);
}

TEST(CentralPathPointTest, KeepsEquationsAndTheirUnknownsOfAnySign) {
  std::mt19937_64 random(4);
  bool negative = false;
  for (int k = 0; k < 30; ++k) {
    const Problem problem = quadratic_program(random, 2, 5);
    Mixed mixed(2, 5, {});
    Eigen::VectorXd v(7), y(7);
    ASSERT_EQ(mixed.solve(problem.M.data(), problem.q.data(), nullptr, v.data(), y.data()), Status::kSolved);
    for (const double kappa : {1e-12, 1e-6, 1e-2, 1.0, 1e2}) {
      const auto p = point(problem, v, kappa, 2);
      expect_on_path(problem, p, kappa, 2);
      negative = negative || p->z.head(2).minCoeff() < 0;
    }
  }
  EXPECT_TRUE(negative);
  const auto equation = point(scalar(-2, -6), Eigen::VectorXd::Constant(1, -3), 1, 1);  // no pair at all
  ASSERT_TRUE(equation.has_value());
  EXPECT_EQ(equation->z[0], -3);
}

TEST(CentralPathPointTest, FindsNoneWhereThereIsNone) {
  const Eigen::VectorXd zero = Eigen::VectorXd::Zero(1);
  EXPECT_FALSE(point(scalar(-1, -1), zero, 1e-3));       // w < 0
  EXPECT_FALSE(point(scalar(0, 0), zero, 1e-3));         // w = 0
  EXPECT_FALSE(point(scalar(-1, 3), zero, 10));          // z w <= 9 / 4
  EXPECT_FALSE(point(scalar(1, -1e200), zero, 1e-150));  // w = 1e-350
}

TEST(CentralPathPointTest, FindsNoneOfWhatIsNotFinite) {
  for (const double bad : {std::nan(""), std::numeric_limits<double>::infinity()}) {
    const Eigen::VectorXd one = Eigen::VectorXd::Ones(1);
    EXPECT_FALSE(point(scalar(bad, -1), one, 1e-3));
    EXPECT_FALSE(point(scalar(1, bad), one, 1e-3));
    EXPECT_FALSE(point(scalar(1, -1), one * bad, 1e-3));
    EXPECT_FALSE(point(scalar(1, -1), one, bad));
  }
}

// What a path's end proposes is its basis, whose solution is exact.
void expect_basis_of_solution(const Problem& problem, const CentralPath& path, int free = 0) {
  const int n = problem.n();
  RowMatrix A = RowMatrix::Identity(n, n);
  Eigen::VectorXd b = Eigen::VectorXd::Zero(n);
  for (int i = 0; i < n; ++i) {
    EXPECT_TRUE(i < free || path.z()[i] >= 0);
    EXPECT_TRUE(path.basic()[i] || (i >= free && path.z()[i] == 0));
    if (!path.basic()[i]) continue;
    A.row(i) = problem.M.row(i);
    b[i] = -problem.q[i];
  }
  const Eigen::VectorXd z = A.partialPivLu().solve(b);
  const Eigen::VectorXd w = problem.M * z + problem.q;
  EXPECT_LT((z - Eigen::Map<const Eigen::VectorXd>(path.z(), n)).norm(), 1e-5);
  for (int i = free; i < n; ++i) EXPECT_GE(std::min(z[i], w[i]), -1e-10);
}

TEST(CentralPathRunTest, EndsAtTheBasisOfASolutionFromEveryStart) {
  std::mt19937_64 random(5);
  for (const int n : {1, 3, 8, 20}) {
    for (int start = 0; start < 10; ++start) {
      const Problem problem = testing::positive_definite(random, n);
      const double size = std::max(problem.M.cwiseAbs().maxCoeff(), problem.q.cwiseAbs().maxCoeff());
      const Problem scaled{problem.M / size, problem.q / size};
      CentralPath path(n, 0);
      ASSERT_EQ(path.run(scaled.M.data(), scaled.q.data(), start, 400), Termination::kCandidate);
      EXPECT_GT(path.steps(), 0);
      expect_basis_of_solution(scaled, path);
    }
  }
}

TEST(CentralPathRunTest, KeepsEquationsAndTheirUnknownsOfAnySign) {
  std::mt19937_64 random(6);
  bool negative = false;
  for (int k = 0; k < 20; ++k) {
    const Problem problem = quadratic_program(random, 2, 4);
    CentralPath path(6, 2);
    ASSERT_EQ(path.run(problem.M.data(), problem.q.data(), k, 400), Termination::kCandidate);
    expect_basis_of_solution(problem, path, 2);
    negative = negative || path.z()[0] < 0;
  }
  EXPECT_TRUE(negative);
}

TEST(CentralPathRunTest, IsStuckWhereThePathEnds) {
  CentralPath path(1, 0);
  for (const Problem& problem : {scalar(-1, -1), scalar(0, -1)}) {
    EXPECT_EQ(path.run(problem.M.data(), problem.q.data(), 0, 400), Termination::kFailed);
  }
}

TEST(CentralPathRunTest, ReportsTheEndOfItsBudget) {
  std::mt19937_64 random(7);
  const Problem problem = testing::positive_definite(random, 4);
  CentralPath path(4, 0);
  for (const int budget : {0, 1, 10}) {
    EXPECT_EQ(path.run(problem.M.data(), problem.q.data(), 0, budget), Termination::kBudget);
    EXPECT_EQ(path.steps(), budget);
  }
}

TEST(CentralPathRunTest, RepeatsItselfBitForBit) {
  std::mt19937_64 random(8);
  const Problem first = testing::positive_definite(random, 5);
  const Problem second = testing::positive_definite(random, 5);
  CentralPath used(5, 0), fresh(5, 0);
  used.run(first.M.data(), first.q.data(), 3, 400);
  point(first, Eigen::VectorXd::Ones(5), 1);
  used.run(second.M.data(), second.q.data(), 4, 400);
  fresh.run(second.M.data(), second.q.data(), 4, 400);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(used.z()[i], fresh.z()[i]);
}

}  // namespace lcp::solver::central_path_test
