#include "solver/candidate.h"

#include <gtest/gtest.h>

#include <cmath>

namespace lcp::solver {
namespace {

// w = M z + q with the solution z = (3, 0), w = (0, 5).
class CandidateTest : public ::testing::Test {
 protected:
  CandidateTest() { EXPECT_TRUE(problem_.load(kM, kQ)); }

  // z in the units of the scaled problem.
  double scaled(double z) const { return std::ldexp(z, -problem_.vector_exponent()); }

  void expect_written() {
    double z[2], w[2];
    ASSERT_TRUE(candidate_.write(problem_, z, w));
    EXPECT_EQ(z[0], 3);
    EXPECT_EQ(z[1], 0);
    EXPECT_EQ(w[0], 0);
    EXPECT_EQ(w[1], 5);
  }

  static constexpr double kM[] = {2, 0, 1, 1};
  static constexpr double kQ[] = {-6, 2};
  static constexpr unsigned char kBasic[] = {1, 0};
  ScaledProblem problem_{2};
  Candidate candidate_{2, {}};
};

TEST_F(CandidateTest, IsWrittenInTheUnitsOfTheCaller) {
  const double z[] = {scaled(3), 0};
  candidate_.set(problem_, z, 0);
  EXPECT_TRUE(candidate_.is_solution());
  EXPECT_TRUE(candidate_.is_near_round_off());
  expect_written();
}

TEST_F(CandidateTest, IsSolvedAfreshWithItsBasis) {
  const double z[] = {scaled(2.9), 0};
  candidate_.set(problem_, z, 0);
  EXPECT_FALSE(candidate_.is_solution());
  EXPECT_TRUE(candidate_.accept(problem_, kBasic));
  expect_written();
}

TEST_F(CandidateTest, IsNoSolutionWithAnotherBasis) {
  const double z[] = {0, scaled(1)};
  const unsigned char basic[] = {0, 1};
  candidate_.set(problem_, z, 0);
  EXPECT_FALSE(candidate_.accept(problem_, basic));
}

TEST_F(CandidateTest, IsReplacedByABetterOneOnly) {
  const double near[] = {scaled(3 + 1e-6), 0};
  const double exact[] = {scaled(3), 0};
  candidate_.set(problem_, near, 0);
  EXPECT_TRUE(candidate_.improve(problem_, exact, 0));
  EXPECT_FALSE(candidate_.improve(problem_, near, 0));
  expect_written();
}

TEST_F(CandidateTest, TakesTheBasisOfAGuess) {
  const double guess[] = {100, 0};
  candidate_.set_basis(problem_, kBasic, guess);
  EXPECT_TRUE(candidate_.is_solution());
  expect_written();
}

TEST_F(CandidateTest, IsNoSolutionWhereItIsNotANumber) {
  const double z[] = {std::nan(""), 0};
  candidate_.set(problem_, z, 0);
  EXPECT_FALSE(candidate_.is_finite());
  EXPECT_FALSE(candidate_.is_solution());
}

}  // namespace
}  // namespace lcp::solver
