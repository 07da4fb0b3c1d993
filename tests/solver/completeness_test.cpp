// Every solution of a small problem that can be represented is found, counted against exact enumeration.
#include "support/completeness.h"

#include <gtest/gtest.h>

#include <random>

#include "support/effort.h"

namespace lcp::testing::completeness_test {

TEST(CompletenessTest, JudgesAnswersByTheExactOnes) {
  solver::Settings lemke;
  lemke.method = solver::Method::kLemke;
  const auto judged = [&](const RowMatrix& M, const Eigen::VectorXd& q, const solver::Settings& settings) {
    const Eigen::VectorXi none = Eigen::VectorXi::Zero(q.size());
    return verdict({{M, q}, none, none}, settings);
  };
  RowMatrix game(2, 2);
  game << 0, 1, 1, 0;
  EXPECT_EQ(judged(RowMatrix::Identity(2, 2), Eigen::Vector2d(-1, 2), {}), Verdict::kSolved);
  EXPECT_EQ(judged(-RowMatrix::Identity(2, 2), Eigen::Vector2d(-1, 2), {}), Verdict::kInfeasible);
  EXPECT_EQ(judged(game, Eigen::Vector2d(-1, -1), {}), Verdict::kSolved);
  EXPECT_EQ(judged(game, Eigen::Vector2d(-1, -1), lemke), Verdict::kMissed);  // its path ends on a ray
  RowMatrix unsolvable(2, 2);
  unsolvable << 0, 1, 0, 1;
  EXPECT_EQ(judged(unsolvable, Eigen::Vector2d(-1, 1), {}), Verdict::kUnsolvable);
}

TEST(CompletenessTest, FindsEverySolutionThatCanBeRepresented) {
  for (const bool single_precision : {false, true}) {
    solver::Settings settings;
    settings.single_precision = single_precision;
    settings.tolerance = solver::default_tolerance(single_precision);
    for (const IntegerFamily& family : integer_families()) {
      std::mt19937_64 random(5);
      for (int k = 0; k < effort(4000) && !HasFailure(); ++k) {
        const IntegerProblem problem = draw(random, family);
        const Verdict verdict = testing::verdict(problem, settings);
        const Problem scaled = problem.problem();
        EXPECT_TRUE(verdict != Verdict::kMissed && verdict != Verdict::kFalse)
            << family.name << describe(scaled, solve(scaled, settings));
      }
    }
  }
}

}  // namespace lcp::testing::completeness_test
