#include "sliding_block/evaluation.h"

#include <torch/nn/module.h>
#include <torch/script.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <iostream>

#include "run/columns.h"
#include "run/files.h"
#include "run/random.h"
#include "sliding_block/trajectories.h"

namespace lcp::training {
namespace {

using torch::Tensor;

constexpr std::int64_t kSteps = 50;
constexpr std::int64_t kRollouts = 20;

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
  Table table;
  const auto add = [&](const char* name, const Tensor& x) { add_trajectories(table, name, x, kSteps, kRollouts); };
  add("rollout", torch::arange(kRollouts, torch::kDouble));
  add("time", (torch::arange(kSteps, torch::kDouble) + 1).unsqueeze(-1) * dt);
  add("v_start", rollout.start);
  add("u", rollout.u);
  add("v_exact", rollout.exact);
  add("v_model", rollout.model);
  return table;
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

nlohmann::json evaluate_model(OutputFolder& out, const RunFlags& run, const Samples& heldout,
                              const PhysicsFlags& block) {
  const torch::NoGradGuard no_grad;
  torch::jit::Module model = torch::jit::load((out / "model.pt").string());
  const Tensor predicted = predict(model, heldout.v, heldout.u);
  const Rollout rollout = roll_out(model, run, block);
  out.write_csv("rollouts.csv", rollout_table(rollout, block.dt));
  nlohmann::json metrics = heldout_metrics(predicted, heldout, block);
  metrics.update(
      {{"rollout_rmse", rmse(rollout.model - rollout.exact)}, {"rollout_unsolved", unsolved(rollout.model)}});
  if (!run.quiet && (metrics["heldout_unsolved"] > 0 || metrics["rollout_unsolved"] > 0)) {
    std::cerr << "warning: the learned LCP has no solution in " << metrics["heldout_unsolved"] << " of "
              << heldout.count() << " held-out steps and " << metrics["rollout_unsolved"] << " of "
              << kSteps * kRollouts << " rollout steps" << std::endl;
  }
  return metrics;
}

}  // namespace lcp::training
