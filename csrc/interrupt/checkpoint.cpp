#include "interrupt/checkpoint.h"

#include <chrono>
#include <functional>
#include <memory>

namespace lcp::interrupt {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kBetweenChecks{100};

// The number of times, over some tenths of a millisecond, that the calling thread looks whether the others are done
// before it sleeps.
constexpr int kSpins = 1000;

// The check that users have set. Threads that are calling a check share it with its successor.
struct Setting {
  std::mutex mutex;
  std::shared_ptr<const Check> check;
  std::atomic<bool> is_set = false;
};

Setting& setting() {
  static Setting one;
  return one;
}

thread_local Call* current = nullptr;
thread_local Clock::time_point last_check;

void call_check() {
  Setting& set = setting();
  if (!set.is_set.load(std::memory_order_relaxed)) return;
  const Clock::time_point now = Clock::now();
  if (now - last_check < kBetweenChecks) return;
  last_check = now;
  std::shared_ptr<const Check> check;
  {
    const std::scoped_lock lock(set.mutex);
    check = set.check;
  }
  if (check) (*check)();
}

}  // namespace

void set_check(Check check) {
  Setting& set = setting();
  const bool is_set = static_cast<bool>(check);
  auto shared = std::make_shared<const Check>(std::move(check));
  const std::scoped_lock lock(set.mutex);
  set.check.swap(shared);
  set.is_set = is_set;
}

void checkpoint() {
  if (current != nullptr) {
    if (current->is_stopped()) throw Stopped();
    if (!current->is_caller()) return;
  }
  call_check();
}

void Pace::rest() {
  work_ = 0;
  checkpoint();
}

bool Call::is_within() { return current != nullptr; }

Call* Call::enter(Call* call) { return std::exchange(current, call); }

void Call::fail() {
  const std::scoped_lock lock(mutex_);
  if (!error_) error_ = std::current_exception();
  stopped_ = true;
}

void Call::complete(std::int64_t part) {
  const bool is_last = done_.fetch_add(part) + part == total_;
  if (is_caller()) {
    if (!is_last) wait_for_others();
  } else if (is_last) {
    const std::scoped_lock lock(mutex_);
    is_done_.notify_one();
  }
}

void Call::wait_for_others() {
  const auto is_done = [this] { return done_.load() == total_; };
  for (int k = 0; k < kSpins; ++k) {
    if (is_done()) return;
    std::this_thread::yield();
  }
  for (;;) {
    {
      std::unique_lock lock(mutex_);
      if (is_done_.wait_for(lock, kBetweenChecks, is_done)) return;
    }
    if (is_stopped()) continue;
    try {
      call_check();
    } catch (...) {
      fail();
    }
  }
}

}  // namespace lcp::interrupt
