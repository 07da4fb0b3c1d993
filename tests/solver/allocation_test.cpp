// The solver's loops allocate nothing.
#include <gtest/gtest.h>

#include "solver/central_path.h"
#include "solver/ladder.h"
#include "solver/path_derivative.h"
#include "support/count_allocations.h"
#include "support/derivative.h"
#include "support/problems.h"

namespace lcp::solver::allocation_test {

// The allocations of solving all but the first problem.
long allocations_after_the_first(const std::vector<testing::Problem>& problems, const Settings& settings,
                                 const double* guess = nullptr) {
  const int n = problems.front().n();
  Ladder ladder(n, settings);
  std::vector<double> z(n), w(n);
  long before = 0;
  for (const auto& problem : problems) {
    if (&problem == &problems[1]) before = testing::allocations();
    ladder.solve(problem.M.data(), problem.q.data(), guess, z.data(), w.data());
  }
  return testing::allocations() - before;
}

std::vector<testing::Problem> positive_definite(int n) {
  std::mt19937_64 random(6);
  std::vector<testing::Problem> problems(100);
  for (testing::Problem& problem : problems) problem = testing::positive_definite(random, n);
  return problems;
}

TEST(AllocationTest, NothingIsAllocatedPerProblemByAnyMethod) {
  const std::vector<double> guess(8, 1.0);
  for (const Method method :
       {Method::kAuto, Method::kLemke, Method::kEnumeration, Method::kNewtonMin, Method::kCentralPath}) {
    Settings settings;
    settings.method = method;
    EXPECT_EQ(allocations_after_the_first(positive_definite(8), settings), 0);
    EXPECT_EQ(allocations_after_the_first(positive_definite(8), settings, guess.data()), 0);
  }
}

TEST(AllocationTest, NothingIsAllocatedPerLargeProblem) {
  EXPECT_EQ(allocations_after_the_first(positive_definite(40), {}), 0);
}

TEST(AllocationTest, NothingIsAllocatedPerProblemOnTheHigherRungs) {
  std::vector<testing::Problem> problems(20, testing::murty(12));  // solved by a random cover
  EXPECT_EQ(allocations_after_the_first(problems, {}), 0);
}

TEST(AllocationTest, NothingIsAllocatedPerDerivative) {
  const auto problems = positive_definite(12);
  Ladder ladder(12, {});
  testing::Derivative derivative(12, 0, false, true);
  CentralPath path(12, 0);
  PathDerivative path_derivative(12);
  std::vector<double> z(12), w(12), z_kappa(12), w_kappa(12), t(12), s(12);
  long before = 0;
  for (const auto& problem : problems) {
    if (&problem == &problems[1]) before = testing::allocations();
    ladder.solve(problem.M.data(), problem.q.data(), nullptr, z.data(), w.data());
    derivative.set(problem.M.data(), z.data(), w.data());
    derivative.adjoint(z.data(), w.data(), t.data());
    ASSERT_TRUE(path.point(problem.M.data(), problem.q.data(), z.data(), 0.1, z_kappa.data(), w_kappa.data()));
    path_derivative.set(problem.M.data(), w_kappa.data(), z_kappa.data());
    path_derivative.adjoint(z.data(), w.data(), t.data(), s.data());
  }
  EXPECT_EQ(testing::allocations(), before);
}

}  // namespace lcp::solver::allocation_test
