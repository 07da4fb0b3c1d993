// training/: one step of learning f and G in the loop: networks, M and q, the solve, the loss, the backward pass, Adam;
// and the time inside lcp:: of it.
#include <lcp/nn/direct_model.h>
#include <lcp/physics/sliding_block.h>
#include <torch/optim/adam.h>

#include <memory>

#include "inside_lcp.h"
#include "measure.h"

namespace lcp::bench {
namespace {

constexpr std::int64_t kBatch = 4096;

class Learner {
 public:
  Learner() : model_(options()), adam_(model_->parameters(), torch::optim::AdamOptions(1e-3)) {
    torch::manual_seed(0);
    const torch::NoGradGuard no_grad;
    v_ = torch::randn(kBatch, torch::kDouble);
    u_ = 4 * torch::randn(kBatch, torch::kDouble);
    const auto block = physics::SlidingBlock::of(1, 0.1, 0.3, 9.81);
    target_ = physics::exact_step(v_, u_, block).v_next;
    // Near the truth, so that every LCP has a solution from the first step on.
    model_->to(torch::kDouble);
    model_->f->affine->weight.copy_(torch::tensor({{1.0, 0.1}, {-1.0, -0.1}}));
    model_->f->affine->bias.zero_();
    model_->G->affine->weight.zero_();
    model_->G->affine->bias.copy_(torch::tensor({0.0, -0.1, -0.1, 0.0}));
    for (torch::Tensor& parameter : model_->parameters()) parameter.add_(0.001 * torch::randn_like(parameter));
  }

  void step() {
    adam_.zero_grad();
    (model_->step(v_, u_).v_next - target_).square().mean().backward();
    adam_.step();
  }

  CheckResult check() {
    const torch::NoGradGuard no_grad;
    return {(model_->step(v_, u_).status == 0).sum().item<std::int64_t>(), 0};
  }

 private:
  static nn::DirectModelOptions options() { return nn::DirectModelOptions().mass(1).dt(0.1).mu(0.3).hidden(32); }

  nn::DirectModel model_;
  torch::optim::Adam adam_;
  torch::Tensor v_, u_, target_;
};

}  // namespace

void add_training_step() {
  add("training/step/whole", kBatch, [](benchmark::State& state) -> Work {
    const auto learner = std::make_shared<Learner>();
    report(state, learner->check(), kBatch);
    return [=] { learner->step(); };
  });
  const auto observed = [](benchmark::State& state) {
    Learner learner;
    InsideLcp observer;
    for (auto _ : state) {
      learner.step();
      state.SetIterationTime(observer.seconds());
    }
    state.counters["problems"] = static_cast<double>(kBatch);
  };
  benchmark::RegisterBenchmark("training/step/inside lcp", observed)->UseManualTime();
}

}  // namespace lcp::bench
