#include "run/progress.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <sstream>
#include <string>
#include <vector>

namespace lcp::training::progress_test {

// The numbers of steps that are shown where stderr is no terminal.
template <typename Work>
std::vector<std::int64_t> shown(const Work& work) {
  ::testing::internal::CaptureStderr();
  work();
  std::istringstream lines(::testing::internal::GetCapturedStderr());
  std::vector<std::int64_t> steps;
  for (std::string line; std::getline(lines, line);) {
    EXPECT_EQ(line.rfind("step ", 0), 0U) << line;
    steps.push_back(std::stoll(line.substr(5)));
  }
  return steps;
}

TEST(ProgressTest, ShowsALineForEachTenthOutsideOfATerminal) {
  const auto steps = shown([] {
    Progress progress("step", 0, 1000, /*quiet=*/false);
    for (std::int64_t k = 0; k <= 1000; ++k) progress.show(k, "");
  });
  EXPECT_EQ(steps, (std::vector<std::int64_t>{0, 100, 200, 300, 400, 500, 600, 700, 800, 900, 1000}));
}

TEST(ProgressTest, OnlyGoesForwards) {
  // A window of ten steps that is fitted again after each of them.
  const auto steps = shown([] {
    Progress progress("step", 0, 100, /*quiet=*/false);
    for (std::int64_t k = 0; k <= 100; ++k) {
      for (int repeat = 0; repeat < 3; ++repeat) {
        for (std::int64_t i = std::max<std::int64_t>(0, k - 10); i <= k; ++i) progress.show(i, "");
      }
    }
  });
  EXPECT_EQ(steps, (std::vector<std::int64_t>{0, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100}));
}

}  // namespace lcp::training::progress_test
