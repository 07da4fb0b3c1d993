#include "lcp/detail/run_tasks.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include <atomic>
#include <cstdint>
#include <stdexcept>

#include "lcp/interrupt.h"
#include "lcp/solve.h"

namespace lcp::learning::run_tasks_test {

TEST(RunTasksTest, EndsAllThreadsWhereOneThrows) {
  std::atomic<std::int64_t> done = 0;
  EXPECT_THROW(lcp::detail::run_tasks(1'000'000, 3,
                                      [&](std::int64_t k) {
                                        if (k == 5) throw std::runtime_error("task");
                                        ++done;
                                      }),
               std::runtime_error);
  EXPECT_LT(done, 1'000'000);
}

TEST(RunTasksTest, EndsWithinATaskWhereTheCheckForInterruptsThrows) {
  // Each task would solve LCPs for minutes.
  const torch::Tensor M = torch::eye(4, torch::kDouble), q = -torch::rand({1000, 4}, torch::kDouble);
  set_interrupt_check([] { throw std::runtime_error("stopped"); });
  EXPECT_THROW(lcp::detail::run_tasks(4, 4,
                                      [&](std::int64_t) {
                                        for (int k = 0; k < 10'000'000; ++k) lcp::solve(M, q);
                                      }),
               std::runtime_error);
  set_interrupt_check({});
}

}  // namespace lcp::learning::run_tasks_test
