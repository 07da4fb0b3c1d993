#include "solver/lemke.h"

#include <gtest/gtest.h>

#include <limits>

#include "support/problems.h"

namespace lcp::solver::lemke_test {

using testing::Problem;
using testing::RowMatrix;

Lemke::Options budget(std::int64_t pivots) {
  Lemke::Options options;
  options.max_pivots = pivots;
  return options;
}

TEST(LemkeTest, SolvesASlidingBlock) {
  const Problem problem = testing::sliding_block(1, 0.25);
  Lemke lemke(3);
  ASSERT_EQ(lemke.run(problem.M.data(), problem.q.data(), budget(10)), Termination::kCandidate);
  const Eigen::Vector3d z(lemke.z());
  EXPECT_LT((z - Eigen::Vector3d(0, 0.25, 0.75)).norm(), 1e-15);
  EXPECT_FALSE(lemke.basic()[0]);
  EXPECT_TRUE(lemke.basic()[1]);
  EXPECT_TRUE(lemke.basic()[2]);
}

TEST(LemkeTest, ReportsRayTermination) {
  const double M = -1;
  const double q = -1;
  Lemke lemke(1);
  EXPECT_EQ(lemke.run(&M, &q, budget(10)), Termination::kFailed);
}

TEST(LemkeTest, ReportsTheEndOfItsBudget) {
  const Problem problem = testing::murty(8);
  Lemke lemke(8);
  EXPECT_EQ(lemke.run(problem.M.data(), problem.q.data(), budget(100)), Termination::kBudget);
  EXPECT_EQ(lemke.pivots(), 100);
}

TEST(LemkeTest, VisitsEveryBasisOfMurtysExampleFromTheOnesVector) {
  const Problem problem = testing::murty(8);
  Lemke lemke(8);
  EXPECT_EQ(lemke.run(problem.M.data(), problem.q.data(), budget(1000)), Termination::kCandidate);
  EXPECT_EQ(lemke.pivots(), 256);
}

TEST(LemkeTest, FindsAShorterPathFromARandomCover) {
  const Problem problem = testing::murty(8);
  Lemke lemke(8);
  Lemke::Options options = budget(200);
  options.cover = 2;
  EXPECT_EQ(lemke.run(problem.M.data(), problem.q.data(), options), Termination::kCandidate);
}

TEST(LemkeTest, SolvesProblemsOfAnyOrder) {
  std::mt19937_64 random(6);
  for (int n = 1; n <= 70; ++n) {
    Lemke lemke(n);
    for (int k = 0; k < 5; ++k) {
      Problem problem = testing::positive_definite(random, n);
      problem.q[k % n] = -1;
      ASSERT_EQ(lemke.run(problem.M.data(), problem.q.data(), budget(1000)), Termination::kCandidate);
      const Eigen::Map<const Eigen::VectorXd> z(lemke.z(), n);
      EXPECT_LT(testing::natural_residual(problem, z), 1e-9 * (problem.M.cwiseAbs() * z).maxCoeff());
      for (int i = 0; i < n; ++i) EXPECT_TRUE(lemke.basic()[i] || z[i] == 0);
    }
  }
}

TEST(LemkeTest, RefinesByTheInverseThatItsTableauHolds) {
  std::mt19937_64 random(7);
  for (const int n : {1, 5, 16, 24, 33, 60}) {
    Problem problem = testing::positive_definite(random, n);
    problem.q[0] = -1;
    Lemke lemke(n);
    ASSERT_EQ(lemke.run(problem.M.data(), problem.q.data(), budget(1000)), Termination::kCandidate);
    problem.q *= 1 + 1e-6;  // the same basis solves this one
    const Eigen::Map<const Eigen::VectorXd> z(lemke.z(), n);
    EXPECT_GT(testing::natural_residual(problem, z), 1e-7 * problem.q.cwiseAbs().maxCoeff());
    const Eigen::VectorXd w = problem.M * z + problem.q;
    lemke.refine(w.data());
    EXPECT_LT(testing::natural_residual(problem, z), 1e-13 * (problem.M.cwiseAbs() * z).maxCoeff());
  }
}

TEST(LemkeTest, FailsWhereItsTableauOverflows) {
  const double inf = std::numeric_limits<double>::infinity();
  for (const int n : {1, 2, 3, 5, 7, 9, 15, 24, 33}) {
    for (const double huge : {1e300, inf, std::numeric_limits<double>::quiet_NaN()}) {
      for (int seed = 0; seed < 20; ++seed) {
        std::mt19937_64 random(seed);
        Problem problem = testing::positive_definite(random, n);
        problem.q[seed % n] = -huge;
        problem.M.row((seed + 1) % n) *= seed % 2 == 0 ? 1 : huge;
        Lemke lemke(n);
        lemke.run(problem.M.data(), problem.q.data(), budget(1000));
        lemke.run(problem.M.data(), Eigen::VectorXd::Constant(n, -huge).eval().data(), budget(1000));
        // Whatever came before.
        problem = testing::positive_definite(random, n);
        problem.q[0] = -1;
        EXPECT_EQ(lemke.run(problem.M.data(), problem.q.data(), budget(1000)), Termination::kCandidate);
      }
    }
  }
}

TEST(LemkeTest, RepeatsItselfBitForBit) {
  std::mt19937_64 random(5);
  const Problem problem = testing::friction_block(random, 4, 8);
  Lemke first(40), second(40);
  const Problem other = testing::positive_definite(random, 40);
  second.run(other.M.data(), other.q.data(), budget(1000));  // what came before must not matter
  first.run(problem.M.data(), problem.q.data(), budget(1000));
  second.run(problem.M.data(), problem.q.data(), budget(1000));
  for (int i = 0; i < 40; ++i) EXPECT_EQ(first.z()[i], second.z()[i]);
}

}  // namespace lcp::solver::lemke_test
