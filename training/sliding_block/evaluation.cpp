#include "sliding_block/evaluation.h"

#include <torch/nn/module.h>
#include <torch/script.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <string>

#include "run/program.h"
#include "sliding_block/samples.h"

namespace lcp::training {
namespace {

using torch::Tensor;

constexpr std::int64_t kSteps = 50;
constexpr std::int64_t kRollouts = 20;
constexpr double kRounding = 1e-5;
// A model that misses at most this share of the effect of friction explains it.
constexpr double kNegligible = 0.02;
constexpr double kSuspicious = 5;  // standard deviations by which the mean square of noise may exceed its expectation

struct Rollout {
  Tensor start;            // [rollouts]
  Tensor u, exact, model;  // [steps, rollouts]
};

Tensor predict(torch::jit::Module& model, const Tensor& v, const Tensor& u) { return model.forward({v, u}).toTensor(); }

Rollout roll_out(torch::jit::Module& model, const RunFlags& run, const PhysicsFlags& flags) {
  const auto dtype = run.scalar_type();
  const Tensor start = random_speeds(kRollouts, flags, generator(run.seed, Stream::kRolloutSpeeds)).to(dtype);
  const Tensor u = random_forces(kSteps, kRollouts, flags, generator(run.seed, Stream::kRolloutForces)).to(dtype);
  const physics::SlidingBlock block = sliding_block(flags);
  Tensor exact = start, learned = start;
  std::vector<Tensor> all_exact, all_learned;
  for (std::int64_t k = 0; k < kSteps; ++k) {
    exact = physics::exact_step(exact, u[k], block).v_next;
    learned = predict(model, learned, u[k]);
    all_exact.push_back(exact);
    all_learned.push_back(learned);
  }
  return {start, u, torch::stack(all_exact), torch::stack(all_learned)};
}

Table rollout_table(const Rollout& rollout, double dt) {
  return TrajectoryTable("rollout", kSteps, kRollouts)
      .add_steps("time", 1, dt)
      .add("v_start", rollout.start)
      .add("u", rollout.u)
      .add("v_exact", rollout.exact)
      .add("v_model", rollout.model)
      .take();
}

// Whether the steps are those of the block, up to the rounding of float32.
bool is_of(const Samples& heldout, const PhysicsFlags& block) {
  const Tensor v_next = physics::exact_step(heldout.v, heldout.u, sliding_block(block)).v_next;
  return (v_next - heldout.v_next).abs().max().item<double>() <=
         kRounding * std::max(heldout.v.abs().max().item<double>(), heldout.v_next.abs().max().item<double>());
}

std::int64_t unsolved(const Tensor& velocities) { return velocities.isnan().sum().item<std::int64_t>(); }

}  // namespace

double rmse(const Tensor& error) { return error.to(torch::kDouble).square().mean().sqrt().item<double>(); }

double sticking_fraction(const Tensor& predicted, const Tensor& truth, double tolerance) {
  const Tensor sticks = truth == 0;
  return (predicted.index({sticks}).abs() <= tolerance).to(torch::kDouble).mean().item<double>();
}

Tensor affine_features(const Samples& samples) {
  return torch::stack({samples.v, samples.u, torch::ones_like(samples.v)}, -1);
}

Tensor affine_prediction(const Samples& training, const Samples& heldout) {
  const auto fit = torch::linalg_lstsq(affine_features(training), training.v_next.unsqueeze(-1), {}, "gelsd");
  return (affine_features(heldout) * std::get<0>(fit).squeeze(-1)).sum(-1);
}

nlohmann::json heldout_metrics(const Tensor& predicted, const Samples& heldout, const PhysicsFlags& block) {
  const double close = 1e-3 * block.dt * block.max_friction() / block.mass;
  return {
      {"heldout_rmse", rmse(predicted - heldout.v_next)},
      {"sticking_exact_zero_fraction", sticking_fraction(predicted, heldout.v_next, 0)},
      {"sticking_close_fraction", sticking_fraction(predicted, heldout.v_next, close)},
      {"heldout_samples", heldout.count()},
      {"heldout_unsolved", unsolved(predicted)},
      {"heldout_sticking_fraction", (heldout.v_next == 0).to(torch::kDouble).mean().item<double>()},
  };
}

nlohmann::json against_block(nlohmann::json metrics, const Samples& heldout, const PhysicsFlags& block) {
  if (is_of(heldout, block)) return metrics;
  for (auto& value : metrics) value = nullptr;
  return metrics;
}

double explained_error(const Tensor& predicted, const Samples& heldout, const PhysicsFlags& block,
                       const SampleFlags& flags) {
  const Tensor free = (heldout.v + block.dt / block.mass * heldout.u).to(torch::kDouble);
  const double friction = rmse(heldout.v_next - free), rounding = kRounding * rmse(heldout.v_next);
  double noise = flags.velocity_noise;
  if (!flags.data.empty()) {
    const Tensor error = (predicted - heldout.v_next).to(torch::kDouble).index({free.argsort()});
    noise = rmse(error.diff()) / std::sqrt(2);  // NaN where a step is unsolved: so is the held-out error
  }
  const auto count = static_cast<double>(heldout.count());
  return noise * std::sqrt(1 + kSuspicious * std::sqrt(2 / count)) + kNegligible * friction + rounding;
}

nlohmann::json evaluate_model(OutputFolder& out, const RunFlags& run, const Samples& heldout, const PhysicsFlags& block,
                              const SampleFlags& flags) {
  const torch::NoGradGuard no_grad;
  torch::jit::Module model = torch::jit::load((out / "model.pt").string());
  const Tensor predicted = predict(model, heldout.v, heldout.u);
  nlohmann::json metrics = heldout_metrics(predicted, heldout, block);
  metrics["unexplained"] = unexplained("held-out velocities", metrics["heldout_rmse"],
                                       explained_error(predicted, heldout, block, flags), " m/s");
  metrics.update({{"rollout_rmse", nullptr}, {"rollout_unsolved", nullptr}});
  std::string steps =
      std::to_string(unsolved(predicted)) + " of " + std::to_string(heldout.count()) + " held-out steps";
  std::int64_t lost = unsolved(predicted);
  if (is_of(heldout, block)) {
    const Rollout rollout = roll_out(model, run, block);
    out.write_csv("rollouts.csv", rollout_table(rollout, block.dt));
    const std::int64_t lost_rollouts = unsolved(rollout.model);
    metrics.update({{"rollout_rmse", rmse(rollout.model - rollout.exact)}, {"rollout_unsolved", lost_rollouts}});
    steps += " and " + std::to_string(lost_rollouts) + " of " + std::to_string(kSteps * kRollouts) + " rollout steps";
    lost += lost_rollouts;
  } else if (!run.quiet) {
    std::cerr
        << "the held-out steps are not those of the block of --mass, --dt, --mu and --gravity: nothing is compared "
           "with it"
        << std::endl;
  }
  if (!run.quiet && lost > 0) std::cerr << "warning: the learned LCP has no solution in " << steps << std::endl;
  return metrics;
}

}  // namespace lcp::training
