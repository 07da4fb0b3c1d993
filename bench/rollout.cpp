// rollout/: 1000 steps of 1000 trajectories, on as many threads as there are cores, up to 2. "gradient" is a rollout
// and the gradient of its last state with respect to mu and the first. Beside it: the time inside lcp:: of it; the
// problems of all steps solved as one batch, "gradient" with that of z in q; and a copy of as many bytes as the rollout
// must read and write. Memory that is freed is kept: page faults in fresh memory would be most of the time of some.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <c10/core/GradMode.h>
#include <lcp/physics/point_mass.h>
#include <lcp/physics/sliding_block.h>
#include <malloc.h>
#include <torch/autograd.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <algorithm>
#include <functional>
#include <limits>
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
  physics::Problem problems;  ///< of all steps; of a mixed formulation, those that it reduces to
  std::int64_t states, inputs;
};

// The states before the steps of a rollout, without their history.
Tensor starts_of(const Tensor& first, const Tensor& next) {
  return at::cat({first.unsqueeze(0), next.slice(0, 0, -1)}).detach();
}

Rollout sliding_block(physics::SlidingBlockFormulation formulation) {
  torch::manual_seed(0);
  const auto block = physics::SlidingBlock::of(1, 0.1, 0.3, 9.81);
  const Tensor u = 4.4 * torch::randn({kSteps, kTrajectories}, torch::kDouble);
  const Tensor first = torch::randn({kTrajectories}, torch::kDouble);
  const Tensor v = starts_of(first, physics::simulate(first, u, block, formulation).step.v_next);
  const bool direct = formulation == physics::SlidingBlockFormulation::kDirect;
  return {first,
          block.mu,
          [=](const Tensor& start, const Tensor& mu) -> Result {
            const auto solution = physics::simulate(start, u, {block.mass, block.dt, mu, block.gravity}, formulation);
            return {solution.step.v_next[-1], solution.status};
          },
          direct ? physics::direct_problem(v, u, block) : physics::traditional_problem(v, u, block),
          1,
          1};
}

Rollout point_mass(physics::PointMassFormulation formulation) {
  torch::manual_seed(0);
  const auto mass = physics::PointMass::of(1, 0.01, 0.5, 9.81);
  const Tensor height = torch::rand({kTrajectories}, torch::kDouble);
  const Tensor position = torch::stack({torch::zeros_like(height), height}, -1);
  const Tensor u = torch::zeros({kSteps, 1, 2}, torch::kDouble);
  const Tensor first = 3 * torch::randn({kTrajectories, 2}, torch::kDouble);
  const physics::PointMassOptions options = {formulation, physics::Stabilization::kPosition};
  const auto next = physics::simulate({position, first}, u, mass, options).step.next;
  const physics::PointMassState starts = {starts_of(position, next.position), starts_of(first, next.velocity)};
  return {first,
          mass.mu,
          [=](const Tensor& velocity, const Tensor& mu) -> Result {
            const auto solution = physics::simulate({position, velocity}, u,
                                                    {mass.mass, mass.dt, mu, mass.gravity, mass.restitution}, options);
            return {solution.step.next.position[-1], solution.status};
          },
          physics::reduced_problem(starts, u, mass, options.stabilization),
          4,
          2};
}

// The bytes that a step of a trajectory must read and write: its input, the next state, z, w, the residual and the
// status; with the gradient, also the complementary basis, to and fro, and the gradient of the next state.
std::int64_t bytes_of_a_step(const Rollout& rollout, bool gradient) {
  const std::int64_t n = rollout.problems.q.size(-1);
  const std::int64_t forward = 8 * (rollout.inputs + rollout.states + 2 * n + 1) + 1;
  return gradient ? forward + 2 * n + 8 * rollout.states : forward;
}

void keep_freed_memory() {
  mallopt(M_MMAP_MAX, 0);
  mallopt(M_TRIM_THRESHOLD, std::numeric_limits<int>::max());
  mallopt(M_TOP_PAD, 1 << 28);
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
    const auto solves = [=]() -> Work {
      const auto [M, q] = make().problems;
      if (!gradient) return solving(M, q.contiguous());
      const Tensor leaf = q.contiguous().requires_grad_();
      return [=, M = M, ones = at::ones_like(q)] {
        benchmark::DoNotOptimize(torch::autograd::grad({solve(M, leaf).z}, {leaf}, {ones}));
      };
    };
    const auto copies = [=]() -> Work {
      const std::int64_t half = bytes_of_a_step(make(), gradient) * kSteps * kTrajectories / 2;
      const Tensor from = at::ones({half / 8}, torch::kDouble);
      return [from, to = from.clone()] { to.copy_(from); };
    };
    const int threads = std::min(2, static_cast<int>(std::thread::hardware_concurrency()));
    const std::string name = "rollout/" + system + (gradient ? " gradient" : " forward");
    const auto on_threads = [=](benchmark::State& state, const std::function<Work()>& prepare, InsideLcp* observer) {
      keep_freed_memory();
      at::set_num_threads(threads);
      const Work run = prepare();
      run();
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
      on_threads(state, work, nullptr);
    })->UseRealTime();
    benchmark::RegisterBenchmark((name + "/inside lcp").c_str(), [=](benchmark::State& state) {
      InsideLcp observer;
      on_threads(state, work, &observer);
    })->UseManualTime();
    benchmark::RegisterBenchmark((name + "/one batch").c_str(), [=](benchmark::State& state) {
      on_threads(state, solves, nullptr);
    })->UseRealTime();
    benchmark::RegisterBenchmark((name + "/copy").c_str(), [=](benchmark::State& state) {
      on_threads(state, copies, nullptr);
    })->UseRealTime();
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
