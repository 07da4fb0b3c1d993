#include "run/sweep.h"

#include <chrono>
#include <exception>
#include <iostream>
#include <utility>
#include <vector>

#include "run/interrupt.h"
#include "run/process_group.h"
#include "run/progress.h"
#include "run/text.h"

namespace lcp::training {
namespace {

constexpr std::chrono::seconds kSaveEvery(5);
constexpr const char* kResults = "checkpoint.pt";

}  // namespace

Sweep::Sweep(OutputFolder& out, const RunFlags& run, const std::optional<Checkpoint>& earlier, std::int64_t fingerprint)
    : out_(out), run_(run), fingerprint_(fingerprint) {
  if (!earlier) return;
  earlier->require_data(fingerprint_, out_ / kResults);
  try {
    results_ = TaskResults::parts_of({earlier->state.at("results"), earlier->tensors});
  } catch (const std::exception&) {
    refuse_checkpoint(out_ / kResults);
  }
}

std::optional<int> Sweep::run(std::int64_t count, const char* unit,
                              const std::function<Checkpoint(std::int64_t k)>& work) {
  const auto done = [&] { return static_cast<std::int64_t>(results_.size()); };
  std::vector<std::int64_t> missing;
  for (std::int64_t k = 0; k < count; ++k) {
    if (!results_.contains(k)) missing.push_back(k);
  }
  const Interrupt interrupt;
  Progress progress(unit, done(), count, run_.quiet);
  DividedTasks tasks(std::move(missing));
  while (done() < count) {
    const auto start = std::chrono::steady_clock::now();
    results_.merge(tasks.advance(run_.threads, work, [&] {
      return interrupt.signal() != 0 || std::chrono::steady_clock::now() - start >= kSaveEvery;
    }));
    save();
    progress.show(done(), "");
    const std::int64_t signal = ProcessGroup::current().largest(interrupt.signal());
    if (signal == 0) continue;
    if (!run_.quiet) std::cerr << "\nstopped; to continue: " << resume_command(out_.path().string()) << std::endl;
    return static_cast<int>(128 + signal);
  }
  return std::nullopt;
}

void Sweep::save() {
  Checkpoint all = results_.joined();
  all.state = {
      {"config", out_.flags()}, {"iteration", results_.size()}, {"data", fingerprint_}, {"results", all.state}};
  out_.write(kResults, all.encode());
}

}  // namespace lcp::training
