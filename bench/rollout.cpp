// rollout/: 1000 steps of 1000 trajectories, on as many threads as there are cores, up to 2; and the time inside lcp::
// of it. "gradient" is a rollout and the gradient of its last state with respect to mu and the first.
#include <ATen/Parallel.h>
#include <c10/core/GradMode.h>
#include <lcp/physics/point_mass.h>
#include <lcp/physics/sliding_block.h>
#include <torch/autograd.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <algorithm>
#include <functional>
#include <thread>

#include "inside_lcp.h"
#include "measure.h"

namespace lcp::bench {
namespace {

using at::Tensor;

constexpr std::int64_t kSteps = 1000;
constexpr std::int64_t kTrajectories = 1000;

struct Result {
  Tensor last, status;
};

/// A rollout of a system from (state, mu).
struct Rollout {
  Tensor state, mu;
  std::function<Result(const Tensor& state, const Tensor& mu)> run;
};

Rollout sliding_block(physics::SlidingBlockFormulation formulation) {
  torch::manual_seed(0);
  const auto block = physics::SlidingBlock::of(1, 0.1, 0.3, 9.81);
  const Tensor u = 4.4 * torch::randn({kSteps, kTrajectories}, torch::kDouble);
  return {torch::randn({kTrajectories}, torch::kDouble), block.mu, [=](const Tensor& v, const Tensor& mu) -> Result {
            const auto solution = physics::simulate(v, u, {block.mass, block.dt, mu, block.gravity}, formulation);
            return {solution.step.v_next[-1], solution.status};
          }};
}

Rollout point_mass(physics::PointMassFormulation formulation) {
  torch::manual_seed(0);
  const auto mass = physics::PointMass::of(1, 0.01, 0.5, 9.81);
  const Tensor height = torch::rand({kTrajectories}, torch::kDouble);
  const Tensor position = torch::stack({torch::zeros_like(height), height}, -1);
  const Tensor u = torch::zeros({kSteps, 1, 2}, torch::kDouble);
  return {3 * torch::randn({kTrajectories, 2}, torch::kDouble), mass.mu,
          [=](const Tensor& velocity, const Tensor& mu) -> Result {
            const auto solution =
                physics::simulate({position, velocity}, u, {mass.mass, mass.dt, mu, mass.gravity, mass.restitution},
                                  {formulation, physics::Stabilization::kPosition});
            return {solution.step.next.position[-1], solution.status};
          }};
}

void add_rollout(const std::string& system, const std::function<Rollout()>& make) {
  for (const bool gradient : {false, true}) {
    const auto work = [=]() -> Work {
      const Rollout rollout = make();
      if (!gradient) {
        return [=] {
          const c10::NoGradGuard no_grad;
          rollout.run(rollout.state, rollout.mu);
        };
      }
      return [=] {
        const Tensor state = rollout.state.detach().requires_grad_();
        const Tensor mu = rollout.mu.detach().requires_grad_();
        torch::autograd::grad({rollout.run(state, mu).last.sum()}, {state, mu});
      };
    };
    const int threads = std::min(2, static_cast<int>(std::thread::hardware_concurrency()));
    const std::string name = "rollout/" + system + (gradient ? " gradient" : " forward");
    const auto on_threads = [=](benchmark::State& state, InsideLcp* observer) {
      at::set_num_threads(threads);
      const Work run = work();
      if (observer) observer->seconds();
      for (auto _ : state) {
        run();
        if (observer) state.SetIterationTime(observer->seconds());
      }
      at::set_num_threads(1);
      state.counters["problems"] = static_cast<double>(kSteps * kTrajectories);
    };
    benchmark::RegisterBenchmark((name + "/whole").c_str(), [=](benchmark::State& state) {
      const Rollout rollout = make();
      report(state, {(rollout.run(rollout.state, rollout.mu).status == 0).sum().item<std::int64_t>(), 0},
             kSteps * kTrajectories);
      on_threads(state, nullptr);
    })->UseRealTime();
    benchmark::RegisterBenchmark((name + "/inside lcp").c_str(), [=](benchmark::State& state) {
      InsideLcp observer;
      on_threads(state, &observer);
    })->UseManualTime();
  }
}

}  // namespace

void add_rollouts() {
  using Sliding = physics::SlidingBlockFormulation;
  using Point = physics::PointMassFormulation;
  add_rollout("sliding_block direct", [] { return sliding_block(Sliding::kDirect); });
  add_rollout("sliding_block traditional", [] { return sliding_block(Sliding::kTraditional); });
  add_rollout("sliding_block mixed", [] { return sliding_block(Sliding::kMixed); });
  add_rollout("point_mass stewart_trinkle", [] { return point_mass(Point::kStewartTrinkle); });
  add_rollout("point_mass belbute_peres", [] { return point_mass(Point::kBelbutePeres); });
}

}  // namespace lcp::bench
