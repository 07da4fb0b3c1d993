#include "interrupt/checkpoint.h"

#include <gtest/gtest.h>

#include <chrono>
#include <stdexcept>
#include <thread>

namespace lcp::interrupt {
namespace {

struct Enough {};

class CheckpointTest : public ::testing::Test {
 protected:
  void TearDown() override { set_check({}); }

  // Works until the call ends, or for some minutes.
  static void work() {
    Pace pace;
    for (int k = 0; k < 100'000; ++k) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      pace.spend(1'000'000);
    }
  }
};

TEST_F(CheckpointTest, TheCallingThreadChecksWhileItWaitsForOthers) {
  int checks = 0;
  const auto caller = std::this_thread::get_id();
  set_check([&] {
    EXPECT_EQ(std::this_thread::get_id(), caller);
    if (++checks == 3) throw Enough();
  });
  Call call(2);
  std::thread other([&] { call.run(1, work); });
  call.run(1, [] {});
  other.join();
  EXPECT_TRUE(call.is_stopped());
  EXPECT_THROW(call.finish(), Enough);
  EXPECT_EQ(checks, 3);
}

TEST_F(CheckpointTest, AnErrorOfOneThreadEndsTheOthers) {
  Call call(2);
  std::thread other([&] { call.run(1, [] { throw std::runtime_error("no"); }); });
  call.run(1, work);
  other.join();
  EXPECT_THROW(call.finish(), std::runtime_error);
  bool has_run = false;
  call.run(0, [&] { has_run = true; });  // a part that begins later
  EXPECT_FALSE(has_run);
}

TEST_F(CheckpointTest, WithoutACheckTheWorkIsDone) {
  Call call(3);
  int sum = 0;
  std::thread other([&] { call.run(1, [] { checkpoint(); }); });
  call.run(2, [&] {
    EXPECT_TRUE(Call::is_within());
    checkpoint();
    ++sum;
  });
  other.join();
  EXPECT_NO_THROW(call.finish());
  EXPECT_EQ(sum, 1);
  EXPECT_FALSE(Call::is_within());
}

}  // namespace
}  // namespace lcp::interrupt
