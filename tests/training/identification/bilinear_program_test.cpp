#include "identification/bilinear_program.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace lcp::training::bilinear_program_test {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// The nearest point of the two axes to (a, b), from a start.
MpecSolution nearest(double a, double b, double x, double y, Complementarity method, double bound = 0) {
  BilinearProgram program;
  program.add(0, kInfinity, x, 1, a);
  program.add(0, kInfinity, y, 1, b);
  program.pairs.push_back({0, 1});
  if (bound > 0) program.balls.push_back({{0, 1}, {a, b}, bound});
  return solve(program, {.method = method, .first = method == Complementarity::kPenalty ? 1e-3 : 10});
}

TEST(BilinearProgramTest, EndsOnComplementaryPoints) {
  for (const Complementarity method : {Complementarity::kPenalty, Complementarity::kRelaxation}) {
    const MpecSolution solution = nearest(2, 1, 1, 1, method);
    EXPECT_EQ(solution.status, "solved");
    EXPECT_NEAR(solution.x[0], 2, 1e-6);
    EXPECT_NEAR(solution.x[1], 0, 1e-6);
    EXPECT_NEAR(solution.objective, 1, 1e-6);
    EXPECT_LE(solution.largest_product, 1e-8);
    EXPECT_GT(solution.iterations, 0);
  }
}

TEST(BilinearProgramTest, SatisfiesLinearAndBilinearEquations) {
  // (x - 3)^2 + (z - 1)^2 with x y = 2 and y + z = 2, so that z = 2 - 2 / x.
  BilinearProgram program;
  program.add(0.1, kInfinity, 1, 1, 3);
  program.add(-kInfinity, kInfinity, 1);
  program.add(-kInfinity, kInfinity, 1, 1, 1);
  program.equations.push_back({{{0, 1, 1}}, 2});
  program.equations.push_back({{{1, 1}, {2, 1}}, 2});
  const MpecSolution solution = solve(program, {});
  ASSERT_EQ(solution.status, "solved");
  const double x = solution.x[0], y = solution.x[1], z = solution.x[2];
  EXPECT_NEAR(x * y, 2, 1e-8);
  EXPECT_NEAR(y + z, 2, 1e-8);
  EXPECT_NEAR((x - 3) + (z - 1) * 2 / (x * x), 0, 1e-7);
  EXPECT_NEAR(solution.objective, std::pow(x - 3, 2) + std::pow(z - 1, 2), 1e-12);
}

TEST(BilinearProgramTest, KnowsCosinesAndSines) {
  // The direction nearest to (3, 4) from a start on the other side.
  BilinearProgram program;
  const std::int64_t angle = program.add(-kInfinity, kInfinity, -1);
  const std::int64_t cosine = program.add(-1, 1, 1, 1, 3), sine = program.add(-1, 1, 0, 1, 4);
  program.dependences.push_back({BilinearProgram::Function::kCosine, angle, cosine});
  program.dependences.push_back({BilinearProgram::Function::kSine, angle, sine});
  const MpecSolution solution = solve(program, {});
  ASSERT_EQ(solution.status, "solved");
  EXPECT_NEAR(solution.x[0], std::atan2(4, 3), 1e-7);
  EXPECT_NEAR(solution.x[1], 0.6, 1e-7);
  EXPECT_NEAR(solution.x[2], 0.8, 1e-7);
}

TEST(BilinearProgramTest, KnowsTanhAndLinearCosts) {
  // The least tanh x - x / 2, where the slope of tanh is 1 / 2 and falls.
  BilinearProgram program;
  const std::int64_t x = program.add(-3, 0, -2), y = program.add(-1, 1, 0);
  program.dependences.push_back({BilinearProgram::Function::kTanh, x, y});
  program.cost[0] = -0.5;
  program.cost[1] = 1;
  const MpecSolution solution = solve(program, {});
  ASSERT_EQ(solution.status, "solved");
  EXPECT_NEAR(solution.x[1], -std::sqrt(0.5), 1e-7);
  EXPECT_NEAR(solution.x[1], std::tanh(solution.x[0]), 1e-9);
  EXPECT_NEAR(solution.objective, solution.x[1] - solution.x[0] / 2, 1e-12);
}

TEST(BilinearProgramTest, KeepsWithinBalls) {
  const MpecSolution near = nearest(2, 1, 1, 1, Complementarity::kPenalty, 1.1);
  EXPECT_EQ(near.status, "solved");
  EXPECT_LE(near.objective, 1.1 + 1e-6);
  const MpecSolution none = nearest(2, 1, 2, 1, Complementarity::kRelaxation, 0.5);  // no such point is complementary
  EXPECT_NE(none.status, "solved");
}

TEST(BilinearProgramTest, SaysWhenIterationsRunOut) {
  BilinearProgram program;
  program.add(0, kInfinity, 1, 1, 5);
  program.add(0, kInfinity, 1, 1, 4);
  program.pairs.push_back({0, 1});
  const MpecSolution solution = solve(program, {.max_iterations = 2});
  EXPECT_EQ(solution.status, "the iterations ran out");
}

}  // namespace lcp::training::bilinear_program_test
