#include "lcp/detail/run_tasks.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

#include "interrupt/checkpoint.h"
#include "lcp/detail/one_thread.h"

namespace lcp::detail {

void run_tasks(std::int64_t count, std::int64_t threads, const std::function<void(std::int64_t k)>& work) {
  const OneThread one_thread;
  const std::int64_t workers = std::max<std::int64_t>(1, std::min(threads, count));
  interrupt::Call call(workers);
  std::atomic<std::int64_t> next = 0;
  const auto worker = [&] {
    call.run(1, [&] {
      const at::AutoGradMode grad(true);
      at::set_num_threads(1);  // the number of threads belongs to the thread that sets it
      for (std::int64_t k = next++; k < count && !call.is_stopped(); k = next++) work(k);
    });
  };
  std::vector<std::thread> others;
  for (std::int64_t k = 1; k < workers; ++k) others.emplace_back(worker);
  worker();
  for (std::thread& other : others) other.join();
  call.finish();
}

}  // namespace lcp::detail
