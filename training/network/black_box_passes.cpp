#include "network/black_box_passes.h"

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include "run/process_group.h"
#include "run/progress.h"
#include "run/tasks.h"

namespace lcp::training {

const BlackBox& BlackBoxes::best() const {
  return std::min_element(
             trained.begin(), trained.end(),
             [](const auto& a, const auto& b) { return a.second.validation_error < b.second.validation_error; })
      ->second;
}

void train_in_passes(BlackBoxes& boxes, const PassOptions& options,
                     const std::function<BlackBox(std::int64_t number, std::int64_t iterations)>& train,
                     const std::function<void()>& changed, const std::function<bool()>& stopped) {
  using std::chrono::steady_clock;
  const auto has_begun = [&](std::int64_t pass) {
    return boxes.trained.lower_bound(pass * kBlackBoxFamilies) != boxes.trained.end();
  };
  ProcessGroup& processes = ProcessGroup::current();
  const auto at_once = static_cast<std::size_t>(options.threads * processes.size());
  for (std::int64_t pass = 0; pass == 0 || has_begun(pass) || boxes.seconds < options.seconds; ++pass) {
    const std::int64_t end = (pass + 1) * kBlackBoxFamilies;
    std::vector<std::int64_t> missing;
    for (std::int64_t k = pass * kBlackBoxFamilies; k < end; ++k) {
      const bool is_affine_again = pass > 0 && k % kBlackBoxFamilies == 0;  // which has no random start
      if (!boxes.trained.contains(k) && !is_affine_again) missing.push_back(k);
    }
    const auto done = static_cast<std::int64_t>(boxes.trained.size());
    Progress progress("black box", done, done + static_cast<std::int64_t>(missing.size()), options.quiet);
    for (std::size_t first = 0; first < missing.size(); first += at_once) {
      const auto start = steady_clock::now();
      const auto count = std::min(at_once, missing.size() - first);
      const auto group = divide_tasks(static_cast<std::int64_t>(count), options.threads, [&](std::int64_t k) {
        return train(missing[first + static_cast<std::size_t>(k)], options.iterations << pass).save();
      });
      if (processes.largest(stopped() ? 1 : 0) != 0) return;
      for (std::size_t k = 0; k < count; ++k) {
        boxes.trained.emplace(missing[first + k], BlackBox::load(group[k]));
      }
      boxes.seconds += processes.of_first(std::chrono::duration<double>(steady_clock::now() - start).count());
      changed();
      progress.show(static_cast<std::int64_t>(boxes.trained.size()), "");
    }
  }
}

}  // namespace lcp::training
