#include "lcp/interrupt.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <torch/autograd.h>
#include <torch/types.h>

#include <chrono>
#include <thread>

#include "lcp/solve.h"

namespace lcp {
namespace {

using torch::Tensor;

// Ends a call at its `calls`-th check.
struct Stop {
  int calls = 0;
};

class InterruptTest : public ::testing::TestWithParam<int> {
 protected:
  void SetUp() override { at::set_num_threads(GetParam()); }
  void TearDown() override {
    set_interrupt_check({});
    at::set_num_threads(threads_);
  }

  // What the next check throws; the checks are counted.
  void stop_at(int calls) {
    set_interrupt_check([this, calls] {
      EXPECT_EQ(std::this_thread::get_id(), caller_);
      if (++checks_ == calls) throw Stop{calls};
    });
  }

  int checks_ = 0;

 private:
  int threads_ = at::get_num_threads();
  std::thread::id caller_ = std::this_thread::get_id();
};

// Problems that take minutes.
Tensor matrices() { return torch::randn({1000, 300, 300}, torch::kDouble); }

TEST_P(InterruptTest, ACallEndsByWhatTheCheckThrows) {
  const Tensor M = matrices(), q = torch::randn({1000, 300}, torch::kDouble);
  for (const int calls : {1, 3}) {
    checks_ = 0;
    stop_at(calls);
    EXPECT_THROW(solve(M, q), Stop);
    EXPECT_EQ(checks_, calls);
  }
  const Tensor one = torch::eye(3, torch::kDouble);
  EXPECT_TRUE((solve(one.expand({100, 3, 3}), -one.select(0, 0)).status == 0).all().item<bool>());
}

TEST_P(InterruptTest, ChecksAreATenthOfASecondApart) {
  stop_at(6);
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_THROW(solve(matrices(), torch::randn({1000, 300}, torch::kDouble)), Stop);
  EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(499));
}

TEST_P(InterruptTest, AGradientEndsSoToo) {
  const Tensor M = (torch::eye(500, torch::kDouble) + 1e-3 * torch::randn({500, 500}, torch::kDouble)).requires_grad_();
  const Tensor z = solve(M, torch::full({50, 500}, -1.0, torch::kDouble)).z;
  stop_at(4);
  const auto differentiate = [&] {
    for (int k = 0; k < 10'000; ++k) torch::autograd::grad({z.sum()}, {M}, {}, /*retain_graph=*/true);
  };
  EXPECT_THROW(differentiate(), Stop);
}

INSTANTIATE_TEST_SUITE_P(Threads, InterruptTest, ::testing::Values(1, 2));

}  // namespace
}  // namespace lcp
