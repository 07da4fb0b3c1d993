// Independent pieces of work on several threads, and on several processes.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "lcp/detail/one_thread.h"
#include "run/checkpoint.h"

namespace lcp::training {

using detail::OneThread;

/// Calls work(0), ..., work(count - 1), each once, on this thread and, beside it, threads - 1 others; returns when all
/// are done. Each call has gradients switched on and one thread for its tensor operations, so that its results do not
/// depend on `threads`. Where calls throw, the exception of the first of them, in the order of their numbers, is thrown
/// again.
void run_tasks(std::int64_t count, std::int64_t threads, const std::function<void(std::int64_t k)>& work);

/// What tasks have computed, by their numbers.
struct TaskResults : std::map<std::int64_t, Checkpoint> {
  /// All of them as one checkpoint, and back.
  Checkpoint joined() const;
  static TaskResults parts_of(const Checkpoint& all);
};

/// Tasks that are dealt to all processes of the group (process_group.h), each to whoever asks for the next one. Who
/// does a task does not change its result.
class DividedTasks {
 public:
  /// numbers: those of the tasks, the same in all processes.
  explicit DividedTasks(std::vector<std::int64_t> numbers);

  /// Does tasks as run_tasks does, until there are none left or `pause`, which is asked before each, returns true.
  /// Returns the results of all processes, on each of them. Collective.
  TaskResults advance(std::int64_t threads, const std::function<Checkpoint(std::int64_t k)>& work,
                      const std::function<bool()>& pause = {});

 private:
  const std::vector<std::int64_t> numbers_;
  const std::string name_;  // of the count of dealt tasks
};

/// The results of work(0), ..., work(count - 1), in this order, on all processes. Collective.
std::vector<Checkpoint> divide_tasks(std::int64_t count, std::int64_t threads,
                                     const std::function<Checkpoint(std::int64_t k)>& work);

}  // namespace lcp::training
