// memory/: bytes for each element of the batch. Tensors are counted by an allocator put around LibTorch's own: what is
// held after the forward pass, with what it saves for the backward pass; and the most there is at any time. The most
// resident memory of the process shows what else is allocated.
#include <ATen/ATen.h>
#include <c10/core/CPUAllocator.h>
#include <lcp/solve.h>
#include <malloc.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <fstream>
#include <string>
#include <utility>

#include "measure.h"

namespace lcp::bench {
namespace {

// For one thread, as the benchmarks run.
class CountingAllocator final : public c10::Allocator {
 public:
  CountingAllocator() : inner_(c10::GetCPUAllocator()) { c10::SetCPUAllocator(this, kPriority); }
  ~CountingAllocator() override { c10::SetCPUAllocator(inner_, kPriority); }
  CountingAllocator(const CountingAllocator&) = delete;
  CountingAllocator& operator=(const CountingAllocator&) = delete;

  c10::DataPtr allocate(std::size_t bytes) override {
    auto* block = new Block{inner_->allocate(bytes), this, static_cast<std::int64_t>(bytes)};
    held_ += block->bytes;
    peak_ = std::max(peak_, held_);
    return {block->data.get(), block, &Block::free, block->data.device()};
  }
  void copy_data(void* to, const void* from, std::size_t bytes) const override { default_copy_data(to, from, bytes); }

  std::int64_t held() const { return held_; }
  std::int64_t take_peak() { return std::exchange(peak_, held_); }

 private:
  struct Block {
    c10::DataPtr data;
    CountingAllocator* owner;
    std::int64_t bytes;

    static void free(void* block_pointer) {
      auto* block = static_cast<Block*>(block_pointer);
      block->owner->held_ -= block->bytes;
      delete block;
    }
  };
  static constexpr std::uint8_t kPriority = 255;

  c10::Allocator* inner_;
  std::int64_t held_ = 0;
  std::int64_t peak_ = 0;
};

// A line of /proc/self/status, in bytes; 0 where the system has no such thing.
double process_memory(const std::string& name) {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    double kilobytes = 0;
    if (word == name && status >> kilobytes) return kilobytes * 1024;
  }
  return 0;
}

// False where the system has no such thing.
bool reset_resident_peak() { return static_cast<bool>(std::ofstream("/proc/self/clear_refs") << 5 << std::flush); }

void add_element(int n, bool shared) {
  const std::int64_t drawn = std::clamp<std::int64_t>((std::int64_t{1} << 18) / (n * n), 1, 4096);
  const std::int64_t count = std::clamp<std::int64_t>((std::int64_t{1} << 23) / (n * n), 8, 1 << 20);
  const std::string name = "memory/" + std::to_string(n) + (shared ? "/shared" : "/batched");
  const auto run = [=](benchmark::State& state) {
    const ProblemSet& set = problem_set("definite_" + std::to_string(n), drawn);
    const std::int64_t times = (count + drawn - 1) / drawn;
    const at::Tensor q = set.q.repeat({times, 1}).slice(0, 0, count).clone().requires_grad_();
    const at::Tensor M = (shared ? set.M[0] : set.M.repeat({times, 1, 1}).slice(0, 0, count)).clone().requires_grad_();
    const at::Tensor ones = at::ones_like(q);
    for (auto _ : state) {
      CountingAllocator allocator;
      malloc_trim(0);  // what earlier work freed would hide what this one takes
      const double before = process_memory("VmRSS:");
      const bool resettable = reset_resident_peak();
      SolveResult result = solve(M, q);
      const std::int64_t held = allocator.held();
      const std::int64_t forward_peak = allocator.take_peak();
      auto gradients = torch::autograd::grad({result.z}, {M, q}, {ones});
      const std::int64_t peak = allocator.take_peak();
      const auto per_element = [&](double bytes) { return bytes / static_cast<double>(count); };
      state.counters["inputs"] = per_element(static_cast<double>(M.nbytes() + q.nbytes()));
      state.counters["held"] = per_element(static_cast<double>(held));
      state.counters["forward_peak"] = per_element(static_cast<double>(forward_peak));
      state.counters["peak"] = per_element(static_cast<double>(peak));
      if (resettable) state.counters["resident_peak"] = per_element(std::max(0.0, process_memory("VmHWM:") - before));
      gradients.clear();
      result = {};  // all that the allocator gave is back before it goes
    }
    state.counters["problems"] = static_cast<double>(count);
  };
  benchmark::RegisterBenchmark(name.c_str(), run)->UseRealTime()->Iterations(1);
}

}  // namespace

void add_memory() {
  for (const int n : {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 64, 128, 256, 512}) {
    add_element(n, false);
    if (n <= 32) add_element(n, true);
  }
}

}  // namespace lcp::bench
