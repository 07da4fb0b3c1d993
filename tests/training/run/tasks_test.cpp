#include "run/tasks.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <torch/types.h>

#include <atomic>
#include <stdexcept>
#include <vector>

namespace lcp::training::tasks_test {

TEST(TasksTest, DoesEachTaskOnceWithOneThreadEach) {
  for (const std::int64_t threads : {1, 3, 20}) {
    std::vector<std::atomic<int>> calls(7);
    std::atomic<bool> single = true, differentiates = true;
    run_tasks(7, threads, [&](std::int64_t k) {
      ++calls[static_cast<std::size_t>(k)];
      if (at::get_num_threads() != 1) single = false;
      const torch::Tensor x = torch::ones({1}).requires_grad_();
      if (!(2 * x).requires_grad()) differentiates = false;
    });
    for (const auto& count : calls) EXPECT_EQ(count, 1);
    EXPECT_TRUE(single);
    EXPECT_TRUE(differentiates);
  }
  run_tasks(0, 2, [](std::int64_t) { FAIL(); });
}

TEST(TasksTest, ThrowsTheFirstErrorAfterAllTasks) {
  std::atomic<int> done = 0;
  try {
    run_tasks(5, 2, [&](std::int64_t k) {
      ++done;
      if (k == 1 || k == 3) throw std::runtime_error(std::to_string(k));
    });
    FAIL();
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "1");
  }
  EXPECT_EQ(done, 5);
}

}  // namespace lcp::training::tasks_test
