// The solver's loops allocate nothing.
#include <gtest/gtest.h>

#include "solver/active_set.h"
#include "solver/ladder.h"
#include "support/count_allocations.h"
#include "support/problems.h"

namespace lcp::solver {
namespace {

TEST(AllocationTest, NothingIsAllocatedPerProblem) {
  std::mt19937_64 random(6);
  std::vector<testing::Problem> problems;
  for (int k = 0; k < 200; ++k) problems.push_back(testing::positive_definite(random, 12));
  problems.push_back(testing::murty(12));  // climbs to the random covers
  Ladder ladder(12, {});
  ActiveSet derivative(12, false);
  std::vector<double> z(12), w(12), t(12);
  ladder.solve(problems.back().M.data(), problems.back().q.data(), z.data(), w.data());  // equilibrates once
  const long before = testing::allocations();
  for (const auto& problem : problems) {
    ladder.solve(problem.M.data(), problem.q.data(), z.data(), w.data());
    derivative.set(problem.M.data(), z.data(), w.data());
    derivative.adjoint(z.data(), w.data(), t.data());
  }
  EXPECT_EQ(testing::allocations(), before);
}

}  // namespace
}  // namespace lcp::solver
