#include "solver/directional_derivative.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "solver/ladder.h"
#include "support/derivative.h"
#include "support/problems.h"

namespace lcp::solver::directional_derivative_test {

using Eigen::MatrixXd;
using Eigen::VectorXd;
using testing::Problem;
using testing::RowMatrix;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct Pair {
  VectorXd z, w;
};

// The tolerance is small where differences of solutions are divided by small steps.
Pair solve(const Problem& problem, double tolerance = 1e-13) {
  Pair pair{VectorXd(problem.n()), VectorXd(problem.n())};
  Settings settings;
  settings.tolerance = tolerance;
  Ladder ladder(problem.n(), settings);
  EXPECT_EQ(ladder.solve(problem.M.data(), problem.q.data(), nullptr, pair.z.data(), pair.w.data()), Status::kSolved);
  return pair;
}

struct Answer {
  Status status;
  VectorXd dz, dw;
};

Answer derivative(const Problem& problem, const VectorXd& z, const Problem& direction, bool single_precision = false) {
  const int n = problem.n();
  DirectionalDerivative derivative(n, single_precision);
  derivative.set(problem.M.data(), problem.q.data(), z.data());
  Answer answer{Status::kNotFound, VectorXd(n), VectorXd(n)};
  answer.status = derivative(direction.M.data(), direction.q.data(), answer.dz.data(), answer.dw.data());
  return answer;
}

double radius(const Problem& problem, const VectorXd& z, const VectorXd& dq) {
  DirectionalDerivative derivative(problem.n(), false);
  derivative.set(problem.M.data(), problem.q.data(), z.data());
  return derivative.radius(dq.data());
}

class DirectionalDerivativeTest : public ::testing::Test {
 protected:
  double normal() { return std::normal_distribution<double>()(random_); }
  VectorXd vector(int n) {
    return VectorXd::NullaryExpr(n, [this] { return normal(); });
  }
  MatrixXd matrix(int rows, int columns) {
    return MatrixXd::NullaryExpr(rows, columns, [this] { return normal(); });
  }
  Problem direction(int n) { return {matrix(n, n), vector(n)}; }

  // Makes q so that z_i > 0, w_i > 0 or both are 0, by chance; returns z.
  VectorXd tie(Problem& problem) {
    std::uniform_int_distribution<int> kind(0, 2);
    std::uniform_real_distribution<double> positive(0.5, 2);
    VectorXd z = VectorXd::Zero(problem.n()), w = z;
    for (int i = 0; i < problem.n(); ++i) {
      const int k = kind(random_);
      if (k < 2) (k == 0 ? z : w)[i] = positive(random_);
    }
    problem.q = w - problem.M * z;
    return z;
  }

  Problem p_matrix(int n) {
    Problem problem = testing::positive_definite(random_, n);
    const RowMatrix A = matrix(n, n);
    problem.M += A - A.transpose();
    return problem;
  }

  std::mt19937_64 random_{14};
};

TEST_F(DirectionalDerivativeTest, IsTheOneSidedDerivativeAtTiesOfPMatrices) {
  int ties = 0;
  for (int k = 0; k < 200; ++k) {
    const int n = 1 + k % 7;
    Problem problem = p_matrix(n);
    const VectorXd z = tie(problem);
    const VectorXd w = (problem.M * z + problem.q).cwiseMax(0);
    ties += (z + w).minCoeff() < 1e-9;
    const Problem d = direction(n);
    const auto [status, dz, dw] = derivative(problem, z, d);
    ASSERT_EQ(status, Status::kSolved);
    const double h = 1e-7;
    const Pair after = solve({problem.M + h * d.M, problem.q + h * d.q});
    const double size = 1 + dz.squaredNorm() + dw.squaredNorm();
    EXPECT_LT((dz - (after.z - z) / h).norm(), 1e-4 * size) << k;
    EXPECT_LT((dw - (after.w - w) / h).norm(), 1e-4 * size) << k;
  }
  EXPECT_GT(ties, 100);
}

TEST_F(DirectionalDerivativeTest, IsExactAlongQ) {
  // The solution is linear in t from 0 to the next tie.
  for (int k = 0; k < 200; ++k) {
    const int n = 1 + k % 7;
    Problem problem = p_matrix(n);
    const VectorXd z = tie(problem);
    const VectorXd dq = vector(n);
    const auto [status, dz, dw] = derivative(problem, z, {RowMatrix::Zero(n, n), dq});
    ASSERT_EQ(status, Status::kSolved);
    const double t = 0.1 / (1 + dz.cwiseAbs().maxCoeff() + dw.cwiseAbs().maxCoeff());
    const Pair after = solve({problem.M, problem.q + t * dq});
    EXPECT_LT((z + t * dz - after.z).norm(), 1e-10);
    EXPECT_LT((problem.M * z + problem.q + t * dw - after.w).norm(), 1e-10);
  }
}

TEST_F(DirectionalDerivativeTest, TakesTheSideThatTheDirectionPointsTo) {
  const Problem problem{RowMatrix::Constant(1, 1, 2), VectorXd::Zero(1)};
  for (const double dq : {1.0, -1.0}) {
    const auto [status, dz, dw] =
        derivative(problem, VectorXd::Zero(1), {RowMatrix::Zero(1, 1), VectorXd::Constant(1, dq)});
    EXPECT_EQ(status, Status::kSolved);
    EXPECT_EQ(dz[0], std::max(0.0, -dq / 2));
    EXPECT_EQ(dw[0], std::max(0.0, dq));
  }
}

TEST_F(DirectionalDerivativeTest, IsPositivelyHomogeneous) {
  Problem problem = p_matrix(6);
  const VectorXd z = tie(problem);
  const Problem d = direction(6);
  const Answer one = derivative(problem, z, d);
  for (const double factor : {0.0, 1e-100, 1e-3, 7.0, 1e100}) {
    const Answer answer = derivative(problem, z, {factor * d.M, factor * d.q});
    ASSERT_EQ(answer.status, Status::kSolved);
    EXPECT_LE((answer.dz - factor * one.dz).norm(), 1e-10 * factor * one.dz.norm());
    EXPECT_LE((answer.dw - factor * one.dw).norm(), 1e-10 * factor * one.dw.norm());
  }
}

TEST_F(DirectionalDerivativeTest, IsTheActiveSetsTangentWithoutTies) {
  for (int k = 0; k < 50; ++k) {
    const Problem problem = p_matrix(5);
    const Pair pair = solve(problem);
    const Problem d = direction(5);
    const auto [status, dz, dw] = derivative(problem, pair.z, d);
    EXPECT_EQ(status, Status::kSolved);
    testing::Derivative active_set(5, 0, false, false);
    active_set.set(problem.M.data(), problem.q.data(), pair.z.data(), pair.w.data());
    const VectorXd r = d.M * pair.z + d.q;
    VectorXd expected_dz(5), expected_dw(5);
    active_set.tangent(r.data(), expected_dz.data(), expected_dw.data());
    EXPECT_LT((dz - expected_dz).norm(), 1e-12 * (1 + dz.norm()));
    EXPECT_LT((dw - expected_dw).norm(), 1e-12 * (1 + dw.norm()));
  }
}

TEST_F(DirectionalDerivativeTest, GivesTheMotionOfRedundantContacts) {
  // J J' z + J u: the impulses z are not unique, the velocities w and u + J'z are. Three closed contacts stop the body
  // of three degrees of freedom, and then every other contact is tied; so are all where u = 0.
  for (int k = 0; k < 200; ++k) {
    const int n = 4 + k % 4;
    const MatrixXd J = matrix(n, 3);
    const VectorXd u = k % 5 == 0 ? VectorXd::Zero(3) : vector(3);
    const Problem problem{J * J.transpose(), J * u};
    const Pair before = solve(problem);
    const VectorXd du = vector(3);
    const auto [status, dz, dw] = derivative(problem, before.z, {RowMatrix::Zero(n, n), J * du});
    ASSERT_EQ(status, Status::kSolved) << k;
    const double h = 1e-7;
    const Pair after = solve({problem.M, J * (u + h * du)});
    EXPECT_LT((dw - (after.w - before.w) / h).norm(), 1e-5 * (1 + dw.norm())) << k;
    EXPECT_LT((J.transpose() * (dz - (after.z - before.z) / h)).norm(), 1e-5 * (1 + dz.norm())) << k;
  }
}

TEST_F(DirectionalDerivativeTest, FollowsBlocksWhoseVelocitiesGrowOrShrink) {
  // Along q the solution itself, or its opposite, solves the critical cone's problem.
  for (int k = 0; k < 300; ++k) {
    const Problem problem = testing::friction_block(random_);
    const int n = problem.n();
    const Pair pair = solve(problem, 1e-9);
    const VectorXd dq = k % 2 ? problem.q : -problem.q;
    const auto [status, dz, dw] = derivative(problem, pair.z, {RowMatrix::Zero(n, n), dq});
    ASSERT_EQ(status, Status::kSolved) << k;
    EXPECT_LT((problem.M * dz + dq - dw).cwiseAbs().maxCoeff(), 1e-9 * dq.cwiseAbs().maxCoeff());
    testing::Derivative active_set(n, 0, false, false);
    active_set.set(problem.M.data(), problem.q.data(), pair.z.data(), pair.w.data());
    for (int i = 0; i < n; ++i) {
      if (active_set.tied(i)) {
        EXPECT_TRUE(dz[i] >= 0 && dw[i] >= 0 && dz[i] * dw[i] == 0);
      } else {
        EXPECT_EQ(active_set.active(i) ? dw[i] : dz[i], 0);
      }
    }
  }
}

TEST_F(DirectionalDerivativeTest, WorksInSinglePrecision) {
  for (int k = 0; k < 50; ++k) {
    Problem problem = testing::positive_definite(random_, 5);
    problem.M = problem.M.cast<float>().cast<double>();
    VectorXd z = tie(problem).cast<float>().cast<double>();
    problem.q = problem.q.cast<float>().cast<double>();
    const Problem d = direction(5);
    const auto [status, dz, dw] = derivative(problem, z, d, true);
    ASSERT_EQ(status, Status::kSolved);
    const VectorXd error = problem.M * dz + d.M * z + d.q - dw;
    const VectorXd size = problem.M.cwiseAbs() * dz.cwiseAbs() + (d.M * z + d.q).cwiseAbs();
    EXPECT_LT(error.norm(), 1e-4 * size.norm());
  }
}

TEST_F(DirectionalDerivativeTest, ReportsWhereTheSolutionEnds) {
  const VectorXd zero = VectorXd::Zero(1), minus = VectorXd::Constant(1, -1);
  for (const double M : {0.0, -1.0}) {
    const auto [status, dz, dw] =
        derivative({RowMatrix::Constant(1, 1, M), zero}, zero, {RowMatrix::Zero(1, 1), minus});
    EXPECT_EQ(status, Status::kInfeasible);
    EXPECT_TRUE(std::isnan(dz[0]) && std::isnan(dw[0]));
    EXPECT_EQ(derivative({RowMatrix::Constant(1, 1, M), zero}, zero, {RowMatrix::Zero(1, 1), -minus}).status,
              Status::kSolved);
  }
}

TEST_F(DirectionalDerivativeTest, ReportsBadInput) {
  const Problem problem{RowMatrix::Identity(2, 2), Eigen::Vector2d(-1, 0)};
  const Problem d{RowMatrix::Ones(2, 2), Eigen::Vector2d(1, 1)};
  const Eigen::Vector2d z(1, 0);
  for (const double bad : {std::nan(""), kInfinity}) {
    Problem bad_M = d, bad_q = d;
    bad_M.M(1, 1) = bad;
    bad_q.q[0] = bad;
    for (const Answer& answer : {derivative(problem, z, bad_M), derivative(problem, z, bad_q)}) {
      EXPECT_EQ(answer.status, Status::kBadInput);
      EXPECT_TRUE(answer.dz.array().isNaN().all() && answer.dw.array().isNaN().all());
    }
  }
  const Problem untied{RowMatrix::Identity(2, 2), Eigen::Vector2d(-1, 1)};
  EXPECT_EQ(derivative(untied, z, {d.M, Eigen::Vector2d(0, kInfinity)}).status, Status::kBadInput);
  const Answer unsolved = derivative(problem, Eigen::Vector2d::Constant(std::nan("")), d);
  EXPECT_EQ(unsolved.status, Status::kBadInput);
  EXPECT_TRUE(unsolved.dz.array().isNaN().all() && unsolved.dw.array().isNaN().all());
}

TEST_F(DirectionalDerivativeTest, WorksOnTheEmptyProblem) {
  EXPECT_EQ(derivative({RowMatrix(0, 0), VectorXd(0)}, VectorXd(0), {RowMatrix(0, 0), VectorXd(0)}).status,
            Status::kSolved);
  EXPECT_EQ(radius({RowMatrix(0, 0), VectorXd(0)}, VectorXd(0), VectorXd(0)), kInfinity);
}

TEST_F(DirectionalDerivativeTest, HasARadiusWithinWhichTheActiveSetStays) {
  int finite = 0;
  for (int k = 0; k < 200; ++k) {
    const int n = 1 + k % 7;
    const Problem problem = p_matrix(n);
    const Pair pair = solve(problem);
    const VectorXd dq = vector(n);
    const double reach = radius(problem, pair.z, dq);
    ASSERT_GT(reach, 0);
    const auto active_at = [&](double t) -> std::vector<bool> {
      const VectorXd z = solve({problem.M, problem.q + t * dq}).z;
      std::vector<bool> active(n);
      for (int i = 0; i < n; ++i) active[i] = z[i] > 0;
      return active;
    };
    const double far = std::min(reach, 1e3);
    for (const double share : {0.0, 0.5, 1 - 1e-6}) EXPECT_EQ(active_at(share * far), active_at(0)) << k;
    if (reach > 1e6) continue;
    EXPECT_NE(active_at((1 + 1e-6) * reach), active_at(0)) << k;
    ++finite;
  }
  EXPECT_GT(finite, 100);
}

TEST_F(DirectionalDerivativeTest, HasNoRadiusWhereATieBreaksAtOnce) {
  const Problem problem{RowMatrix::Identity(2, 2), Eigen::Vector2d(-1, 0)};
  const Eigen::Vector2d z(1, 0);
  EXPECT_EQ(radius(problem, z, Eigen::Vector2d(0, -1)), 0);         // w_1 falls: z_1 becomes active
  EXPECT_EQ(radius(problem, z, Eigen::Vector2d(0, 1)), kInfinity);  // w_1 rises
  EXPECT_EQ(radius(problem, z, Eigen::Vector2d(-1, 0)), kInfinity);
  EXPECT_EQ(radius(problem, z, Eigen::Vector2d(0.5, 1)), 2);  // z_0 = 1 - t / 2
  EXPECT_EQ(radius(problem, z, Eigen::Vector2d::Zero()), kInfinity);
  Problem rounded{RowMatrix::Identity(2, 2), Eigen::Vector2d(-1, std::nextafter(-1, 0))};
  rounded.M(1, 0) = 1;  // w_1 = 1e-16 is tied too
  EXPECT_EQ(radius(rounded, z, Eigen::Vector2d(0, -1)), 0);
}

TEST_F(DirectionalDerivativeTest, TakesNoRoundOffForATieThatBreaks) {
  // Three contacts hold the body of three degrees of freedom, and the others, all tied, cannot move.
  int held = 0;
  for (int k = 0; k < 100; ++k) {
    const int n = 6;
    const MatrixXd J = matrix(n, 3);
    const Problem problem{J * J.transpose(), J * vector(3)};
    const Pair pair = solve(problem);
    if ((pair.z.array() > 0).count() != 3 || !pair.w.isZero(1e-12)) continue;
    EXPECT_GT(radius(problem, pair.z, J * vector(3)), 1e-9);
    ++held;
  }
  EXPECT_GT(held, 5);
}

TEST_F(DirectionalDerivativeTest, HasARadiusForAnInactiveW) {
  const Problem problem{RowMatrix::Identity(2, 2), Eigen::Vector2d(3, 4)};
  EXPECT_EQ(radius(problem, Eigen::Vector2d(0, 0), Eigen::Vector2d(-1, -2)), 2);
  EXPECT_EQ(radius(problem, Eigen::Vector2d(0, 0), Eigen::Vector2d(1, 0)), kInfinity);
  EXPECT_TRUE(std::isnan(radius(problem, Eigen::Vector2d(0, std::nan("")), Eigen::Vector2d(1, 1))));
}

}  // namespace lcp::solver::directional_derivative_test
