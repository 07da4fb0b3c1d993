#include "solver/lemke.h"

#include <gtest/gtest.h>

#include "support/problems.h"

namespace lcp::solver {
namespace {

using testing::Problem;
using testing::RowMatrix;

Lemke::Options budget(std::int64_t pivots) {
  Lemke::Options options;
  options.max_pivots = pivots;
  return options;
}

TEST(LemkeTest, SolvesASlidingBlock) {
  Problem problem{RowMatrix(3, 3), Eigen::Vector3d(1, -1, 0.25)};
  problem.M << 1, -1, 1, -1, 1, 1, -1, -1, 0;
  Lemke lemke(3);
  ASSERT_EQ(lemke.run(problem.M.data(), problem.q.data(), budget(10)), End::kClaim);
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
  EXPECT_EQ(lemke.run(&M, &q, budget(10)), End::kStuck);
}

TEST(LemkeTest, ReportsTheEndOfItsBudget) {
  const Problem problem = testing::murty(8);
  Lemke lemke(8);
  EXPECT_EQ(lemke.run(problem.M.data(), problem.q.data(), budget(100)), End::kLimit);
  EXPECT_EQ(lemke.pivots(), 100);
}

TEST(LemkeTest, VisitsEveryBasisOfMurtysExampleFromTheOnesVector) {
  const Problem problem = testing::murty(8);
  Lemke lemke(8);
  EXPECT_EQ(lemke.run(problem.M.data(), problem.q.data(), budget(1000)), End::kClaim);
  EXPECT_EQ(lemke.pivots(), 256);
}

TEST(LemkeTest, FindsAShorterPathFromARandomCover) {
  const Problem problem = testing::murty(8);
  Lemke lemke(8);
  Lemke::Options options = budget(200);
  options.cover = 2;
  EXPECT_EQ(lemke.run(problem.M.data(), problem.q.data(), options), End::kClaim);
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

}  // namespace
}  // namespace lcp::solver
