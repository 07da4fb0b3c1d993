#include <ATen/ATen.h>
#include <torch/utils.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "direct/direct.h"
#include "lcp/nn/direct_model.h"
#include "lcp/solve.h"
#include "run/program.h"
#include "sliding_block/evaluation.h"

namespace lcp::training {
namespace {

using torch::Tensor;

nn::DirectModel make_model(const RunFlags& run, const PhysicsFlags& block, const Samples& samples,
                           const StartFlags& start, const FromMotionOptions& options) {
  const auto scale = [](const Tensor& x) { return std::max(rmse(x), 1e-12); };
  auto model_options = options_of<nn::DirectModelOptions>(block)
                           .mu(NAN)
                           .forces(nn::DirectForces::kSlack)
                           .bias(options.bias)
                           .hidden(options.hidden);
  if (start.file()) {
    model_options.velocity_scale(number_in(start.start, "velocity_scale"))
        .force_scale(number_in(start.start, "force_scale"));
  } else {
    model_options.velocity_scale(scale(samples.v)).force_scale(scale(samples.u));
  }
  nn::DirectModel model(model_options);
  model->to(run.scalar_type());
  if (start.file()) {
    start.load([&] { nn::load_torchscript(model, start.start); });
    return model;
  }
  const torch::NoGradGuard no_grad;
  for (const Tensor& parameter : model->G->parameters()) parameter.zero_();
  const double unit = model_options.velocity_scale() / model_options.force_scale();
  model->G->affine->bias.copy_((block.dt / block.mass / unit * at::eye(2, at::kDouble)).flatten());
  return model;
}

LearnedLcp learned_lcp(const nn::DirectModel& model) {
  const Tensor G = model->G->affine->bias.detach().unflatten(0, {2, 2}) *
                   (model->options.velocity_scale() / model->options.force_scale());
  LearnedLcp lcp;
  lcp.unit = model->options.velocity_scale();
  lcp.numbers = [model](const Samples& samples, const Tensor& theta) {
    return model->f->value(samples.v, samples.u, theta) * model->options.velocity_scale();
  };
  lcp.step = [G](const Samples&, const Tensor& f) {
    const SolveResult result = solve(G.to(f), f);
    return result.w.select(-1, 0) - result.w.select(-1, 1);
  };
  lcp.missed = [](const Tensor& f) { return f.slice(-1, 0, 0); };
  lcp.penalties = [](const Tensor& theta) { return theta.slice(-1, 0, 0); };
  return lcp;
}

// The one-sided error of f, [..., n, 2], for each of the starts, relative to `unit`.
Tensor one_sided(const Tensor& f, const Samples& samples, double rest_below, double unit) {
  const Tensor v = at::where(samples.v_next.abs() <= rest_below, 0, samples.v_next);
  const Tensor w = at::stack({v.relu(), (-v).relu()}, -1);
  return (at::where(w > 0, f - w, f.relu()) / unit).square().sum(-1).mean(-1);
}

}  // namespace

int train_from_motion(CommandLine& line, const RunFlags& run, const TrainingFlags& flags, const PhysicsFlags& block,
                      const SampleFlags& sample_flags, const StartFlags& start, const FromMotionOptions& options) {
  FolderLock lock(run.out);
  const std::optional<Checkpoint> checkpoint = resume(line, lock, flags.resume);
  torch::set_num_threads(static_cast<int>(run.threads));
  const Data data = load_data(run, block, sample_flags);
  OutputFolder out(line, run, std::move(lock));
  Trainer trainer(out, run, flags, checkpoint);
  const Samples training = data.training.to(run.scalar_type()), heldout = data.heldout.to(run.scalar_type());
  nn::DirectModel model = make_model(run, block, data.training, start, options);
  const LearnedLcp lcp = learned_lcp(model);
  const auto errors = [&](const Tensor& theta) { return lcp.errors(training, theta); };
  const Tensor first =
      start.random() ? at::randn({start.count(), model->f->size()}, generator(run.seed, Stream::kStarts), at::kDouble)
                     : model->f->theta().detach().unsqueeze(0);
  Starts starts(first.to(run.scalar_type()));
  double done_part = 0;
  const auto stopped = trainer.train(
      starts, training.count(), options.batch_size, data.fingerprint(),
      [&](const Tensor& rows, double done) -> LossTerms {
        done_part = done;
        const Samples batch = training.at(rows);
        const Tensor f = lcp.numbers(batch, starts.left(done, errors).unsqueeze(1));
        return {{"loss", one_sided(f, batch, options.rest_below, lcp.unit).mean()}};
      },
      [&]() -> NamedValues {
        const Tensor theta = starts.left(done_part, errors);
        model->f->set_theta(theta[errors(theta).argmin()]);
        return {{"heldout_rmse", rmse(model->step(heldout.v, heldout.u).v_next - heldout.v_next)}};
      },
      {.chunk = std::max<std::int64_t>(1, kSamplesOfAChunk / first.size(0))});
  if (stopped) return *stopped;
  if (!ProcessGroup::current().is_first()) return 0;

  const OneThread one_thread;
  model->to(torch::kDouble);
  model->f->set_theta(best_start(lcp, data.training, starts.left(1, errors).detach().to(torch::kDouble),
                                 start.finishing_iterations, run.seed));
  model->to(run.scalar_type());
  write_model(out, nn::torchscript_bytes(model));
  nlohmann::json metrics = evaluate_model(out, run, heldout, block, sample_flags);
  const Samples some = training.at(at::arange(std::min<std::int64_t>(training.count(), 256)));
  IdentifiabilityReport report;
  report.add(jacobian(model->step(some.v, some.u).v_next / lcp.unit, model->f->parameters()),
             parameter_names(*model->f));
  metrics.update(report.json());
  {
    const torch::NoGradGuard no_grad;
    metrics.update(against_block({{"parameter_error", parameter_error(model, heldout, block)}}, heldout, block));
  }
  metrics["training_samples"] = training.count();
  metrics["final_loss"] = trainer.history()["loss"].back();
  write_results(out, metrics, {"rollout.png", "training.png"});
  return 0;
}

}  // namespace lcp::training
