#include "solver/path_derivative.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "solver/central_path.h"
#include "solver/ladder.h"
#include "support/problems.h"

namespace lcp::solver::path_derivative_test {

using Eigen::VectorXd;
using testing::Problem;
using testing::RowMatrix;

struct Pair {
  VectorXd first, second;
};

class PathDerivativeTest : public ::testing::Test {
 protected:
  VectorXd random_vector(int n) {
    return VectorXd::NullaryExpr(n, [this] { return normal_(random_); });
  }

  // Positive, over many orders of magnitude.
  VectorXd random_weights(int n, double decades) {
    return VectorXd::NullaryExpr(n, [&] { return std::pow(10, decades * normal_(random_)); });
  }

  static Pair tangent(PathDerivative& derivative, const VectorXd& r, const VectorXd& s) {
    Pair result{VectorXd(r.size()), VectorXd(r.size())};
    derivative.tangent(r.data(), s.data(), result.first.data(), result.second.data());
    return result;
  }

  static Pair adjoint(PathDerivative& derivative, const VectorXd& g_x, const VectorXd& g_y) {
    Pair result{VectorXd(g_x.size()), VectorXd(g_x.size())};
    derivative.adjoint(g_x.data(), g_y.data(), result.first.data(), result.second.data());
    return result;
  }

  std::mt19937_64 random_{5};
  std::normal_distribution<double> normal_;
};

Pair point(const Problem& problem, const VectorXd& z_0, double kappa, int free) {
  CentralPath path(problem.n(), free);
  Pair p{VectorXd(problem.n()), VectorXd(problem.n())};
  EXPECT_TRUE(path.point(problem.M.data(), problem.q.data(), z_0.data(), kappa, p.first.data(), p.second.data()));
  return p;
}

TEST_F(PathDerivativeTest, AgreesWithCentralDifferencesOfThePath) {
  for (int k = 0; k < 60; ++k) {
    const int n = 1 + k % 6;
    const int free = k % 3 == 0 ? n / 2 : 0;
    Problem problem = testing::positive_definite(random_, n);
    const RowMatrix A = RowMatrix::NullaryExpr(n, n, [this] { return normal_(random_); });
    problem.M += A - A.transpose();
    const double kappa = std::pow(10, -4 + k % 5);
    const VectorXd z_0 = VectorXd::Ones(n);
    const Pair p = point(problem, z_0, kappa, free);
    VectorXd a = p.second, b = p.first;
    a.head(free).setZero();
    b.head(free).setOnes();

    const RowMatrix dM = RowMatrix::NullaryExpr(n, n, [this] { return normal_(random_); });
    const VectorXd dq = random_vector(n);
    const double dkappa = kappa * normal_(random_);
    VectorXd s = VectorXd::Constant(n, dkappa);
    s.head(free).setZero();
    PathDerivative derivative(n);
    derivative.set(problem.M.data(), a.data(), b.data());
    const Pair d = tangent(derivative, dM * p.first + dq, s);

    const double h = 1e-5 * std::sqrt(kappa);
    const Pair plus = point({problem.M + h * dM, problem.q + h * dq}, z_0, kappa + h * dkappa, free);
    const Pair minus = point({problem.M - h * dM, problem.q - h * dq}, z_0, kappa - h * dkappa, free);
    const double size = 1 + d.first.norm() + d.second.norm();
    EXPECT_LT((d.first - (plus.first - minus.first) / (2 * h)).norm(), 1e-6 * size) << k;
    EXPECT_LT((d.second - (plus.second - minus.second) / (2 * h)).norm(), 1e-6 * size) << k;
  }
}

TEST_F(PathDerivativeTest, SolvesItsTwoEquations) {
  for (const double decades : {0.5, 3.0, 40.0}) {
    for (int k = 0; k < 50; ++k) {
      const int n = 1 + k % 7;
      const RowMatrix M = testing::positive_definite(random_, n).M;
      VectorXd a = random_weights(n, decades), b = random_weights(n, decades);
      const VectorXd r = random_vector(n);
      VectorXd s = random_vector(n).cwiseProduct(a.cwiseMax(b));
      a[0] = k % 3 == 0 ? 0.0 : a[0];
      b[n - 1] = k % 3 == 1 ? 0.0 : b[n - 1];
      PathDerivative derivative(n);
      derivative.set(M.data(), a.data(), b.data());
      const auto [x, y] = tangent(derivative, r, s);
      const double size = (M.cwiseAbs() * x.cwiseAbs() + r.cwiseAbs()).maxCoeff();
      EXPECT_LE((M * x + r - y).cwiseAbs().maxCoeff(), 1e-13 * size);
      for (int i = 0; i < n; ++i) {
        EXPECT_NEAR(a[i] * x[i] + b[i] * y[i], s[i], 1e-12 * std::max(a[i], b[i]) * std::max(size, 1.0)) << k;
      }
    }
  }
}

TEST_F(PathDerivativeTest, HasTheTangentsTransposeAsAdjoint) {
  for (const double decades : {0.5, 3.0, 40.0}) {
    for (int k = 0; k < 50; ++k) {
      const int n = 1 + k % 7;
      RowMatrix M = testing::positive_definite(random_, n).M;
      const RowMatrix A = RowMatrix::NullaryExpr(n, n, [this] { return normal_(random_); });
      M += A - A.transpose();
      VectorXd a = random_weights(n, decades), b = random_weights(n, decades);
      a[0] = k % 3 == 0 ? 0.0 : a[0];
      b[n - 1] = k % 3 == 1 ? 0.0 : b[n - 1];
      PathDerivative derivative(n);
      derivative.set(M.data(), a.data(), b.data());
      const VectorXd r = random_vector(n), s = random_vector(n).cwiseProduct(a.cwiseMax(b));
      const VectorXd g_x = random_vector(n), g_y = random_vector(n);
      const auto [x, y] = tangent(derivative, r, s);
      const auto [t_r, t_s] = adjoint(derivative, g_x, g_y);
      const double size = g_x.cwiseAbs().dot(x.cwiseAbs()) + g_y.cwiseAbs().dot(y.cwiseAbs()) +
                          t_r.cwiseAbs().dot(r.cwiseAbs()) + t_s.cwiseAbs().dot(s.cwiseAbs());
      EXPECT_NEAR(g_x.dot(x) + g_y.dot(y), t_r.dot(r) + t_s.dot(s), 1e-11 * size) << k;
    }
  }
}

TEST_F(PathDerivativeTest, TendsToTheDerivativeOnTheActiveSet) {
  RowMatrix M(2, 2);
  M << 2, 1, 1, 2;  // q = (-2, 1): z = (1, 0), w = (0, 2)
  const double kappa = 1e-12;
  const Pair p = point({M, Eigen::Vector2d(-2, 1)}, Eigen::Vector2d(1, 0), kappa, 0);
  PathDerivative derivative(2);
  derivative.set(M.data(), p.second.data(), p.first.data());
  const auto [dz, dw] = tangent(derivative, Eigen::Vector2d(1, 3), Eigen::Vector2d(0, 0));
  EXPECT_LT((dz - Eigen::Vector2d(-0.5, 0)).norm(), 1e-11);
  EXPECT_LT((dw - Eigen::Vector2d(0, 2.5)).norm(), 1e-11);
}

TEST_F(PathDerivativeTest, TakesARowForAnEquationOrForAGivenValue) {
  RowMatrix M(2, 2);
  M << 4, 1, 0, 3;
  const Eigen::Vector2d a(0, 1), b(1, 0);  // y_0 = s_0, x_1 = s_1
  PathDerivative derivative(2);
  derivative.set(M.data(), a.data(), b.data());
  const auto [x, y] = tangent(derivative, Eigen::Vector2d(1, 2), Eigen::Vector2d(0, 5));
  EXPECT_EQ(x, Eigen::Vector2d(-1.5, 5));
  EXPECT_EQ(y, Eigen::Vector2d(0, 17));
}

TEST_F(PathDerivativeTest, AnswersWhereThereIsNoPointWithZeroOrNaN) {
  const double nan = std::nan("");
  const RowMatrix M = RowMatrix::Identity(2, 2);
  const Eigen::Vector2d zero(0, 0), one(0, 1), ones(1, 1), with_nan(1, nan);
  PathDerivative missing(2), singular(2);
  missing.set(M.data(), with_nan.data(), with_nan.data());
  singular.set(M.data(), zero.data(), zero.data());
  for (PathDerivative* derivative : {&missing, &singular}) {
    for (const auto& f : {tangent, adjoint}) {
      EXPECT_EQ(f(*derivative, zero, zero).first, zero);
      EXPECT_EQ(f(*derivative, zero, zero).second, zero);
      for (const auto& [first, second] : {std::pair(zero, one), std::pair(one, zero)}) {
        EXPECT_TRUE(f(*derivative, first, second).first.array().isNaN().all());
        EXPECT_TRUE(f(*derivative, first, second).second.array().isNaN().all());
      }
    }
  }
  missing.set(M.data(), ones.data(), ones.data());  // and recovers
  EXPECT_TRUE(tangent(missing, one, one).first.allFinite());
}

TEST_F(PathDerivativeTest, WorksOnTheEmptyProblem) {
  PathDerivative derivative(0);
  derivative.set(nullptr, nullptr, nullptr);
  derivative.tangent(nullptr, nullptr, nullptr, nullptr);
  derivative.adjoint(nullptr, nullptr, nullptr, nullptr);
}

}  // namespace lcp::solver::path_derivative_test
