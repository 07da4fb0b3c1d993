#include "solver/newton_min.h"

#include <gtest/gtest.h>

#include <Eigen/LU>
#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "support/problems.h"

namespace lcp::solver::newton_min_test {

using testing::Problem;
using testing::RowMatrix;

class Scanned {
 public:
  explicit Scanned(const Problem& problem) : spans_(problem.n()), rows_{problem.n(), problem.M.data(), spans_.data()} {
    linalg::kernels().rows.scan(problem.n(), problem.M.data(), spans_.data());
  }
  const linalg::Rows& rows() const { return rows_; }

 private:
  std::vector<linalg::Span> spans_;
  linalg::Rows rows_;
};

Termination run(const Problem& problem, NewtonMin& newton_min, std::int64_t max_steps = 1000) {
  const bool symmetric = problem.M == problem.M.transpose() && (problem.M.diagonal().array() > 0).all();
  return newton_min.run(Scanned(problem).rows(), symmetric, problem.q.data(), max_steps);
}

void expect_solution(const Problem& problem, std::int64_t max_steps = 1000) {
  NewtonMin newton_min(problem.n());
  ASSERT_EQ(run(problem, newton_min, max_steps), Termination::kCandidate);
  const Eigen::Map<const Eigen::VectorXd> z(newton_min.z(), problem.n());
  const double size = (problem.q.cwiseAbs() + problem.M.cwiseAbs() * z).maxCoeff();
  EXPECT_LE(testing::natural_residual(problem, z), 1e-12 * size);
  for (int i = 0; i < problem.n(); ++i) {
    EXPECT_GE(z[i], 0);
    EXPECT_TRUE(newton_min.basic()[i] || z[i] == 0);
  }
}

// Newton's method on min(z, w) = 0 as it stands, from the same first basis: whether it solves the problem.
bool plain_newton_min_solves(const Problem& problem) {
  const int n = problem.n();
  std::vector<bool> basic(n);
  for (int i = 0; i < n; ++i) basic[i] = problem.q[i] < 0;
  for (int step = 0; step < 1000; ++step) {
    RowMatrix A = RowMatrix::Identity(n, n);  // rows w_i = 0 where basic, z_i = 0 elsewhere
    Eigen::VectorXd b = Eigen::VectorXd::Zero(n);
    for (int i = 0; i < n; ++i) {
      if (!basic[i]) continue;
      A.row(i) = problem.M.row(i);
      b[i] = -problem.q[i];
    }
    const Eigen::VectorXd z = A.partialPivLu().solve(b);
    const Eigen::VectorXd w = problem.M * z + problem.q;
    bool solved = true;
    for (int i = 0; i < n; ++i) {
      if ((basic[i] ? z[i] : w[i]) >= -1e-12) continue;
      basic[i] = !basic[i];
      solved = false;
    }
    if (solved) return true;
  }
  return false;
}

// [Ben Gharbia, Gilbert, 2012]: a P-matrix on which the plain method cycles through {0}, {1}, {2} for q = e, and
// through {0, 1}, {2, 0}, {1, 2} for q = -e. The fourth unknown, always 1, adds to q, so that the first basis is {0},
// or {0, 1}.
Problem cycle(double alpha, double e) {
  Problem problem{RowMatrix::Identity(4, 4), Eigen::Vector4d(-1, e, 1, -1)};
  problem.M(0, 2) = problem.M(1, 0) = problem.M(2, 1) = alpha;
  if (e > 0) {
    problem.M(0, 3) = 2;
  } else {
    problem.M(2, 3) = -2;
  }
  return problem;
}

TEST(NewtonMinTest, SolvesPositiveDefiniteProblemsInFewSteps) {
  std::mt19937_64 random(1);
  for (const int n : {1, 2, 3, 5, 8, 16, 33, 64}) {
    for (int k = 0; k < 30; ++k) expect_solution(testing::positive_definite(random, n), 30 + n);
  }
}

TEST(NewtonMinTest, GivesUpWhereItGoesInCirclesAndNotBefore) {
  std::mt19937_64 random(4);
  const int n = 24;
  NewtonMin newton_min(n);
  int given_up = 0;
  for (int k = 0; k < 100; ++k) {
    const RowMatrix M = testing::low_rank(random, n, n / 2, false) + 1e-9 * RowMatrix::Identity(n, n);
    const Problem problem = testing::plant(random, (M + M.transpose()) / 2).problem;
    const Termination end = newton_min.run(Scanned(problem).rows(), true, problem.q.data(), 1000, true);
    EXPECT_LE(newton_min.steps(), n);
    given_up += end == Termination::kFailed;
    const Problem definite = testing::positive_definite(random, n);
    EXPECT_EQ(newton_min.run(Scanned(definite).rows(), true, definite.q.data(), 1000, true), Termination::kCandidate);
  }
  EXPECT_GT(given_up, 25);
}

TEST(NewtonMinTest, SolvesProblemsOfNonsymmetricPMatrices) {
  std::mt19937_64 random(2);
  std::normal_distribution<double> normal;
  for (const int n : {2, 3, 5, 8, 12, 20}) {
    for (int k = 0; k < 50; ++k) {
      Problem problem = testing::positive_definite(random, n);
      const RowMatrix A = RowMatrix::NullaryExpr(n, n, [&] { return 3 * normal(random); });
      problem.M += A - A.transpose();  // x'M x stays positive
      expect_solution(problem);
      problem.M = A.triangularView<Eigen::StrictlyLower>();
      problem.M.diagonal().setOnes();
      expect_solution(problem);
    }
  }
}

TEST(NewtonMinTest, SolvesBandedProblems) {
  for (const int side : {2, 5, 9, 16}) expect_solution(testing::obstacle(side, side));
}

TEST(NewtonMinTest, SolvesExponentialExamplesOfOtherMethods) {
  for (const int n : {3, 8, 16}) {
    expect_solution(testing::murty(n));
    expect_solution(testing::fathi(n));
  }
}

TEST(NewtonMinTest, SolvesWhatThePlainMethodCyclesOn) {
  for (const double alpha : {1.1, 1.5, 2.0, 10.0}) {
    for (const double e : {1.0, -1.0}) {
      EXPECT_FALSE(plain_newton_min_solves(cycle(alpha, e)));
      expect_solution(cycle(alpha, e));
    }
  }
  EXPECT_TRUE(plain_newton_min_solves(cycle(0.5, 1)));
  expect_solution(cycle(0.5, 1));
}

TEST(NewtonMinTest, SolvesRandomProblemsThatThePlainMethodCyclesOn) {
  std::mt19937_64 random(3);
  std::normal_distribution<double> normal;
  int cycles = 0;
  for (int k = 0; k < 2000; ++k) {
    const int n = 5;
    Problem problem{RowMatrix::Identity(n, n), Eigen::VectorXd::NullaryExpr(n, [&] { return normal(random); })};
    for (int i = 0; i < n; ++i) problem.M((i + 1) % n, i) = 1 + std::abs(normal(random));  // a P-matrix: n is odd
    if (!plain_newton_min_solves(problem)) ++cycles;
    expect_solution(problem);
  }
  EXPECT_GT(cycles, 5);
}

TEST(NewtonMinTest, TakesRoundOffForZeroAtTies) {
  std::mt19937_64 random(4);
  std::uniform_int_distribution<int> three(0, 2);
  std::normal_distribution<double> normal;
  for (int k = 0; k < 500; ++k) {
    Problem problem = testing::positive_definite(random, 8);
    Eigen::VectorXd z(8), w(8);
    for (int i = 0; i < 8; ++i) {
      const int kind = three(random);  // z_i > 0, w_i > 0, or neither
      z[i] = kind == 0 ? std::abs(normal(random)) : 0.0;
      w[i] = kind == 1 ? std::abs(normal(random)) : 0.0;
    }
    problem.q = w - problem.M * z;
    if (problem.q.minCoeff() < 0) expect_solution(problem, 60);
  }
}

TEST(NewtonMinTest, ReturnsZeroForNonnegativeQ) {
  const Problem problem{-RowMatrix::Ones(2, 2), Eigen::Vector2d(0, 3)};
  NewtonMin newton_min(2);
  EXPECT_EQ(run(problem, newton_min), Termination::kCandidate);
  EXPECT_EQ(newton_min.steps(), 1);
  EXPECT_EQ(Eigen::Vector2d(newton_min.z()), Eigen::Vector2d::Zero());
}

TEST(NewtonMinTest, IsStuckOnASingularBasis) {
  NewtonMin one(1), two(2);
  EXPECT_EQ(run({RowMatrix::Zero(1, 1), Eigen::VectorXd::Constant(1, -1)}, one), Termination::kFailed);
  EXPECT_EQ(run({RowMatrix::Ones(2, 2), Eigen::Vector2d(-1, -1)}, two), Termination::kFailed);
  EXPECT_EQ(run({RowMatrix::Constant(1, 1, 1e-300), Eigen::VectorXd::Constant(1, -1e300)}, one), Termination::kFailed);
}

TEST(NewtonMinTest, IsStuckOnASymmetricMatrixThatIsNotDefinite) {
  Problem problem{RowMatrix(2, 2), Eigen::Vector2d(-1, -1)};
  NewtonMin newton_min(2);
  for (const double other : {2.0, 1.0, 1 - 1e-12}) {
    problem.M << 1, other, other, 1;
    EXPECT_EQ(run(problem, newton_min), Termination::kFailed) << other;
  }
  problem.M << 1, 2, 2, 1;
  EXPECT_EQ(newton_min.run(Scanned(problem).rows(), false, problem.q.data(), 10), Termination::kCandidate);
  problem.M << 1, 0.9, 0.9, 1;
  EXPECT_EQ(run(problem, newton_min), Termination::kCandidate);
}

TEST(NewtonMinTest, TriesOneBasis) {
  std::mt19937_64 random(6);
  const Problem problem = testing::positive_definite(random, 20);
  const Scanned scanned(problem);
  NewtonMin newton_min(20);
  ASSERT_EQ(run(problem, newton_min), Termination::kCandidate);
  const std::vector<unsigned char> basic(newton_min.basic(), newton_min.basic() + 20);
  const std::vector<double> z(newton_min.z(), newton_min.z() + 20);
  const std::vector<unsigned char> all(20, 1);
  ASSERT_TRUE(newton_min.try_basis(scanned.rows(), problem.q.data(), all.data()));
  EXPECT_TRUE(std::all_of(newton_min.z(), newton_min.z() + 20, [](double x) { return x >= 0; }));
  ASSERT_TRUE(newton_min.try_basis(scanned.rows(), problem.q.data(), basic.data()));
  for (int i = 0; i < 20; ++i) EXPECT_NEAR(newton_min.z()[i], z[i], 1e-13 * std::abs(z[i])) << i;
  const Problem singular{RowMatrix::Ones(20, 20), problem.q};
  EXPECT_FALSE(newton_min.try_basis(Scanned(singular).rows(), problem.q.data(), all.data()));
}

TEST(NewtonMinTest, RefinesWhatAnInexactLowerTriangleGave) {
  std::mt19937_64 random(7);
  Problem problem = testing::positive_definite(random, 20);
  for (int i = 0; i < 20; ++i) problem.M.row(i).tail(19 - i) *= 1 + 1e-6;
  NewtonMin newton_min(20);
  ASSERT_EQ(newton_min.run(Scanned(problem).rows(), true, problem.q.data(), 50), Termination::kCandidate);
  const auto residual = [&] {
    return testing::natural_residual(problem, Eigen::Map<const Eigen::VectorXd>(newton_min.z(), 20));
  };
  EXPECT_GT(residual(), 1e-8);
  for (int k = 0; k < 2; ++k) {
    const Eigen::VectorXd w = problem.M * Eigen::Map<const Eigen::VectorXd>(newton_min.z(), 20) + problem.q;
    newton_min.refine(w.data());
  }
  EXPECT_LE(residual(), 1e-12);
}

TEST(NewtonMinTest, ReportsTheEndOfItsBudget) {
  NewtonMin newton_min(4);
  for (const int budget : {0, 1, 5}) {
    EXPECT_EQ(run(cycle(2, 1), newton_min, budget), Termination::kBudget);
    EXPECT_EQ(newton_min.steps(), budget);
  }
  NewtonMin one(1);  // z = -1 and w = -1 in turn
  EXPECT_EQ(run({-RowMatrix::Ones(1, 1), -Eigen::VectorXd::Ones(1)}, one), Termination::kBudget);
}

TEST(NewtonMinTest, LeavesNothingOfAnEarlierRun) {
  std::mt19937_64 random(5);
  const Problem first = testing::positive_definite(random, 10);
  const Problem second = testing::positive_definite(random, 10);
  NewtonMin used(10), fresh(10);
  run(first, used);
  run(second, used);
  run(second, fresh);
  EXPECT_TRUE(std::equal(used.z(), used.z() + 10, fresh.z()));
  EXPECT_TRUE(std::equal(used.basic(), used.basic() + 10, fresh.basic()));
  EXPECT_EQ(used.steps(), fresh.steps());
}

}  // namespace lcp::solver::newton_min_test
