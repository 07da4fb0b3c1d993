#include "run/tasks.h"

#include <algorithm>
#include <exception>
#include <mutex>
#include <numeric>
#include <utility>

#include "lcp/detail/run_tasks.h"
#include "run/process_group.h"

namespace lcp::training {

void run_tasks(std::int64_t count, std::int64_t threads, const std::function<void(std::int64_t)>& work) {
  std::vector<std::exception_ptr> errors(static_cast<std::size_t>(count));
  detail::run_tasks(count, threads, [&](std::int64_t k) {
    try {
      work(k);
    } catch (...) {
      errors[static_cast<std::size_t>(k)] = std::current_exception();
    }
  });
  for (const std::exception_ptr& error : errors) {
    if (error) std::rethrow_exception(error);
  }
}

Checkpoint TaskResults::joined() const {
  Checkpoint all{nlohmann::json::object(), {}};
  for (const auto& [k, result] : *this) {
    const std::string number = std::to_string(k);
    all.state[number] = result.state;
    for (const auto& [name, tensor] : result.tensors) all.tensors[number + "." + name] = tensor;
  }
  return all;
}

TaskResults TaskResults::parts_of(const Checkpoint& all) {
  TaskResults results;
  for (const auto& [number, state] : all.state.items()) results[std::stoll(number)].state = state;
  for (const auto& [name, tensor] : all.tensors) {
    std::size_t end = 0;
    const std::int64_t k = std::stoll(name, &end);
    results[k].tensors[name.substr(end + 1)] = tensor;
  }
  return results;
}

DividedTasks::DividedTasks(std::vector<std::int64_t> numbers)
    : numbers_(std::move(numbers)), name_([] {
        static std::int64_t made = 0;  // the same in all processes, since all make the same
        return "tasks_" + std::to_string(made++);
      }()) {}

TaskResults DividedTasks::advance(std::int64_t threads, const std::function<Checkpoint(std::int64_t k)>& work,
                                  const std::function<bool()>& pause) {
  ProcessGroup& group = ProcessGroup::current();
  const auto count = static_cast<std::int64_t>(numbers_.size());
  TaskResults own;
  std::map<std::int64_t, std::exception_ptr> errors;
  std::mutex mutex;
  run_tasks(std::min(threads, count), threads, [&](std::int64_t) {
    while (!(pause && pause())) {
      const std::int64_t place = group.take_number(name_);
      if (place >= count) return;
      const std::int64_t k = numbers_[static_cast<std::size_t>(place)];
      try {
        Checkpoint result = work(k);
        const std::scoped_lock lock(mutex);
        own.emplace(k, std::move(result));
      } catch (...) {
        const std::scoped_lock lock(mutex);
        errors.emplace(k, std::current_exception());
      }
    }
  });
  if (!errors.empty()) std::rethrow_exception(errors.begin()->second);
  if (group.size() == 1) return own;
  TaskResults all;
  for (const std::string& bytes : group.gather(own.joined().encode())) {
    all.merge(TaskResults::parts_of(Checkpoint::decode(bytes, "the result of a process")));
  }
  return all;
}

std::vector<Checkpoint> divide_tasks(std::int64_t count, std::int64_t threads,
                                     const std::function<Checkpoint(std::int64_t k)>& work) {
  std::vector<std::int64_t> numbers(static_cast<std::size_t>(count));
  std::iota(numbers.begin(), numbers.end(), 0);
  TaskResults results = DividedTasks(std::move(numbers)).advance(threads, work);
  std::vector<Checkpoint> all;
  all.reserve(results.size());
  for (auto& [k, result] : results) all.push_back(std::move(result));
  return all;
}

}  // namespace lcp::training
