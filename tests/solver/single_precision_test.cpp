// Frictional contact of light and heavy bodies in single precision: z rounded to float must still solve the problem.
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <utility>

#include "support/claims.h"
#include "support/effort.h"

namespace lcp::testing::single_precision_test {

using solver::Method;

double share_solved(const ContactFamily& family, bool single_precision) {
  std::mt19937_64 random(5);
  solver::Settings settings;
  settings.single_precision = single_precision;
  settings.tolerance = solver::default_tolerance(single_precision);
  const int count = effort(20000);
  int solved = 0;
  for (int k = 0; k < count; ++k) {
    Problem problem = contacts_of(random, family);
    if (single_precision) {
      problem.M = problem.M.cast<float>().cast<double>();
      problem.q = problem.q.cast<float>().cast<double>();
    }
    const Answer answer = solve(problem, settings);
    EXPECT_EQ(answer_error(problem, settings, answer), "") << describe(problem, answer);
    solved += answer.status == Status::kSolved;
  }
  return static_cast<double>(solved) / count;
}

TEST(SinglePrecisionTest, SolvesContactsWithAMassRatioOfAMillion) {
  for (const bool separating : {false, true}) {
    for (const auto& [contacts, directions] : {std::pair{1, 2}, {2, 2}, {1, 6}}) {
      for (const auto& [least_mu, most_mu] : {std::pair{0.1, 1.0}, {1e3, 1e4}, {0.1, 1e8}}) {
        const ContactFamily family = {contacts, directions, 1e6, least_mu, most_mu, 1, separating};
        EXPECT_GE(share_solved(family, true), 0.999) << contacts << " " << directions << " " << most_mu;
        EXPECT_EQ(share_solved(family, false), 1) << contacts << " " << directions << " " << most_mu;
      }
    }
  }
}

// Of problems whose rows are parallel up to 1e-3, rounding makes a few unsolvable.
TEST(SinglePrecisionTest, SolvesContactsWithNearlyParallelRows) {
  EXPECT_GE(share_solved({1, 2, 1, 0.5, 0.5, 1e-3}, true), 0.98);
  EXPECT_EQ(share_solved({1, 2, 1, 0.5, 0.5, 1e-3, true}, true), 1);
}

TEST(SinglePrecisionTest, FindsASolutionBesideOnesThatRoundingSpoils) {
  Problem problem{RowMatrix(4, 4), Eigen::Vector4d(1, 3.6F, -3.6F, 0)};
  problem.M << 25, 77.2F, -77.2F, 0, 77.2F, 238.4F, -238.4F, 1, -77.2F, -238.4F, 238.4F, 1, 0.7F, -1, -1, 0;
  solver::Settings settings;
  settings.single_precision = true;
  settings.tolerance = solver::default_tolerance(true);
  EXPECT_EQ(solve(problem, settings).status, Status::kSolved);
}

// Lemke's method by itself takes the entry 1 for the round-off of the other one of its column.
TEST(SinglePrecisionTest, TakesAWHoweverLarge) {
  for (const bool single_precision : {false, true}) {
    for (const int exponent : {20, 25, 37, 100, 300}) {
      if (single_precision && exponent > 37) continue;
      for (const Method method : {Method::kAuto, Method::kEnumeration, Method::kNewtonMin, Method::kCentralPath}) {
        solver::Settings settings;
        settings.method = method;
        settings.single_precision = single_precision;
        settings.tolerance = solver::default_tolerance(single_precision);
        Problem problem{RowMatrix::Identity(2, 2), Eigen::Vector2d(0, -1)};
        problem.M(0, 1) = std::pow(10, exponent);
        if (single_precision) problem.M(0, 1) = static_cast<float>(problem.M(0, 1));
        const Answer answer = solve(problem, settings);
        EXPECT_EQ(answer.status, Status::kSolved)
            << static_cast<int>(method) << " " << exponent << " " << single_precision;
        EXPECT_EQ(answer.z, Eigen::Vector2d(0, 1))
            << static_cast<int>(method) << " " << exponent << " " << single_precision;
      }
    }
  }
}

}  // namespace lcp::testing::single_precision_test
