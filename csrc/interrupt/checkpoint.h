// Places in long loops at which a call of an operator may end, see include/lcp/interrupt.h.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>

namespace lcp::interrupt {

using Check = std::function<void()>;

/// Implements lcp::set_interrupt_check.
void set_check(Check check);

/// Calls the check of include/lcp/interrupt.h if its last call from this thread is a tenth of a second old, and throws
/// what the check throws. In a worker thread it throws Stopped if the call for which the thread works has ended. Takes
/// some 20 ns.
void checkpoint();

/// The exception that ends the work of a thread whose call has ended elsewhere.
struct Stopped {};

/// Calls `checkpoint` each time a loop has done about kOperations operations. An object belongs to one thread.
class Pace {
 public:
  /// operations: the additions and multiplications since the last call, roughly.
  [[gnu::always_inline]] void spend(std::int64_t operations) {
    work_ += operations;
    if (work_ > kOperations) rest();
  }

 private:
  // Operations between two calls of `checkpoint`: less than a millisecond, and many times longer than the call.
  static constexpr std::int64_t kOperations = 200'000;

  [[gnu::noinline, gnu::cold]] void rest();

  std::int64_t work_ = 0;
};

/// A call whose work is divided among threads. Made by the calling thread, which takes part in the work. If one of the
/// threads throws, or the check does in the calling thread, all of them stop.
class Call {
 public:
  /// total: the amount of work, in the unit of `run`.
  explicit Call(std::int64_t total) : total_(total), caller_(std::this_thread::get_id()) { checkpoint(); }

  /// Does a part of the work in this thread. The calling thread returns when the others have done theirs, too, so that
  /// it goes on to check.
  template <class Work>
  void run(std::int64_t part, const Work& work) {
    Call* const outer = enter(this);
    try {
      if (!is_stopped()) work();
    } catch (const Stopped&) {
    } catch (...) {
      fail();
    }
    enter(outer);
    complete(part);
  }

  /// Throws the exception that ended the call, if there is one. The calling thread calls this when all parts have run.
  void finish() const {
    if (error_) std::rethrow_exception(error_);
  }

  bool is_stopped() const { return stopped_.load(std::memory_order_relaxed); }
  bool is_caller() const { return std::this_thread::get_id() == caller_; }

  /// Whether this thread works for a call already.
  static bool is_within();

 private:
  static Call* enter(Call* call);  ///< returns the call for which this thread has worked
  void fail();                     ///< keeps the exception that is being handled, if it is the first
  void complete(std::int64_t part);
  void wait_for_others();

  std::int64_t total_;
  std::thread::id caller_;
  std::atomic<std::int64_t> done_ = 0;
  std::atomic<bool> stopped_ = false;
  std::mutex mutex_;
  std::condition_variable is_done_;
  std::exception_ptr error_;
};

}  // namespace lcp::interrupt
