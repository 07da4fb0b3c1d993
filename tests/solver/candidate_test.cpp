#include "solver/candidate.h"

#include <gtest/gtest.h>

#include <cmath>

namespace lcp::solver::candidate_test {

// w = M z + q with the solution z = (3, 0), w = (0, 5).
class CandidateTest : public ::testing::Test {
 protected:
  CandidateTest() { EXPECT_TRUE(problem_.load(kM, kQ)); }

  // z in the units of the scaled problem.
  double scaled(double z) const { return std::ldexp(z, -problem_.vector_exponent()); }

  void expect_solution() {
    ASSERT_TRUE(candidate_.is_solution(problem_));
    EXPECT_EQ(candidate_.given_z()[0], 3);
    EXPECT_EQ(candidate_.given_z()[1], 0);
    EXPECT_EQ(candidate_.given_w()[0], 0);
    EXPECT_EQ(candidate_.given_w()[1], 5);
  }

  static constexpr double kM[] = {2, 0, 1, 1};
  static constexpr double kQ[] = {-6, 2};
  static constexpr unsigned char kBasic[] = {1, 0};
  ScaledProblem problem_{2};
  Candidate candidate_{2, {}};
};

TEST_F(CandidateTest, IsGivenInTheUnitsOfTheCaller) {
  const double z[] = {scaled(3), 0};
  candidate_.set(problem_, z, 0);
  EXPECT_TRUE(candidate_.is_near_round_off());
  expect_solution();
}

TEST_F(CandidateTest, IsSolvedAfreshWithItsBasis) {
  const double z[] = {scaled(2.9), 0};
  candidate_.set(problem_, z, 0);
  EXPECT_FALSE(candidate_.is_solution(problem_));
  EXPECT_TRUE(candidate_.accept(problem_, kBasic));
  expect_solution();
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
  expect_solution();
}

TEST_F(CandidateTest, TakesTheBasisOfAGuess) {
  const double guess[] = {100, 0};
  candidate_.set_basis(problem_, kBasic, guess);
  expect_solution();
}

TEST_F(CandidateTest, IsNoSolutionWhereRoundingToFloatMakesItWrong) {
  // z = (2^24 + 1, 1): in float, z_1 is 2^24, and the first row misses 1 = |q|.
  const double M[] = {1, -16777216, 0, 1};
  const double q[] = {-1, -1};
  Settings single;
  single.single_precision = true;
  Settings derived = single;
  derived.derived = true;
  for (const Settings& settings : {Settings{}, single, derived}) {
    Candidate candidate(2, settings);
    ASSERT_TRUE(problem_.load(M, q));
    const double z[] = {scaled(16777217), scaled(1)};
    candidate.set(problem_, z, problem_.matrix_exponent());
    EXPECT_EQ(candidate.is_solution(problem_), !settings.single_precision || settings.derived);
  }
}

TEST_F(CandidateTest, IsNoSolutionWhereItIsNotANumber) {
  const double z[] = {std::nan(""), 0};
  candidate_.set(problem_, z, 0);
  EXPECT_FALSE(std::isfinite(candidate_.violation()));
  EXPECT_FALSE(candidate_.is_solution(problem_));
}

}  // namespace lcp::solver::candidate_test
