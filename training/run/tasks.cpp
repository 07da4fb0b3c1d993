#include "run/tasks.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <thread>
#include <vector>

#include "run/one_thread.h"

namespace lcp::training {

void run_tasks(std::int64_t count, std::int64_t threads, const std::function<void(std::int64_t k)>& work) {
  std::vector<std::exception_ptr> errors(static_cast<std::size_t>(count));
  std::atomic<std::int64_t> next = 0;
  const OneThread one_thread;
  const auto worker = [&] {
    const at::AutoGradMode grad(true);
    at::set_num_threads(1);  // the number of threads belongs to the thread that sets it
    for (std::int64_t k = next++; k < count; k = next++) {
      try {
        work(k);
      } catch (...) {
        errors[static_cast<std::size_t>(k)] = std::current_exception();
      }
    }
  };
  std::vector<std::thread> others;
  for (std::int64_t k = 1; k < std::min(threads, count); ++k) others.emplace_back(worker);
  worker();
  for (std::thread& other : others) other.join();
  for (const std::exception_ptr& error : errors) {
    if (error) std::rethrow_exception(error);
  }
}

}  // namespace lcp::training
