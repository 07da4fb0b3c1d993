#include "friction/train_friction_model.h"

#include <ATen/ATen.h>
#include <torch/utils.h>

#include <algorithm>
#include <iostream>
#include <utility>
#include <vector>

#include "run/program.h"
#include "sliding_block/evaluation.h"

namespace lcp::training {
namespace {

using torch::Tensor;

// Samples times starts of a chunk: with fewer, the calls of tensor operations take longer than their work.
constexpr std::int64_t kNumbersOfAChunk = 4096;

}  // namespace

void FrictionFlags::add_to(CommandLine& line) {
  run.add_to(line);
  samples.add_to(line);
  training.add_to(line);
  block.add_to(line);
  model.add_to(line);
  line.add("batch-size", batch_size, "Samples of a minibatch where there are several starts", at_least_one);
  line.footer("Example: " + line.program() + " --states gentle --initial-mu 2.5 --out runs/gentle\n" +
              "Data of your own: CSV with columns v,u,v_next (m/s, N, m/s), and optionally trajectory; one row in\n"
              "five, or one trajectory in five, is held out. --mu is then only what the result is compared with." +
              kModelNote + kCheckpointNote);
}

int train_friction_model(CommandLine& line, FrictionFlags& flags, const FrictionMethod& method, int argc,
                         const char* const* argv) {
  flags.add_to(line);
  if (const auto status = line.parse(argc, argv)) return *status;
  flags.samples.validate(line);
  flags.model.validate(line);
  if (flags.block.gravity == 0) throw UsageError("--gravity must be > 0: m g is the unit of force; got 0");
  FolderLock lock(flags.run.out);
  const std::optional<Checkpoint> checkpoint = resume(line, lock, flags.training.resume);
  torch::set_num_threads(static_cast<int>(flags.run.threads));

  const Data data = load_data(flags.run, flags.block, flags.samples);
  OutputFolder out(line, flags.run, std::move(lock));
  Trainer trainer(out, flags.run, flags.training, checkpoint);
  auto made = flags.model.make(flags.run, flags.block, data.training);
  nn::TraditionalModel& model = made.first;
  const Samples training = data.training.to(flags.run.scalar_type());
  const Samples heldout = data.heldout.to(flags.run.scalar_type());
  const LearnedLcp lcp = learned_lcp(model, flags.model.nonlinearity);
  const auto errors = [&](const Tensor& theta) { return lcp.errors(training, theta); };
  Starts starts(made.second);
  double done_part = 0;
  const auto stopped = trainer.train(
      starts, training.count(), flags.model.start.count() > 1 ? flags.batch_size : training.count(), data.fingerprint(),
      [&](const Tensor& rows, double done) -> LossTerms {
        done_part = done;
        const Samples batch = training.at(rows);
        const Tensor theta = starts.left(done, errors).unsqueeze(1);
        const Tensor f = model->f_of(batch.v, batch.u, theta);
        const Tensor G = model->G_of(batch.v, batch.u, theta);
        const Tensor limited = at::cat({f.slice(-1, 0, 2), f.slice(-1, 2).clamp_min(0)}, -1);
        const Tensor value = method.loss(model, batch, G, limited, done).mean();
        const Tensor missed = model->missed(G).abs().mean(-2).sum(-1).mean();
        const Tensor negative = method.limit_penalty() * (-f.select(-1, 2)).relu().mean();
        const Tensor nonlinear = model->nonlinear(theta).square().sum(-1).mean();
        return {{"loss", value + missed + negative + flags.model.nonlinearity_at(done) * nonlinear},
                {method.name, value},
                {"missed", missed}};
      },
      [&] {
        const Tensor theta = starts.left(done_part, errors);
        model->set_theta(theta[errors(theta).argmin()]);
        NamedValues figures = {{"heldout_rmse", rmse(model->step(heldout.v, heldout.u).v_next - heldout.v_next)}};
        const nlohmann::json friction = friction_metrics(model, flags.block);
        if (friction["mu"].is_number()) figures.emplace_back("mu", friction["mu"].get<double>());
        for (const auto& figure : method.report(model, training)) figures.push_back(figure);
        return figures;
      },
      {.chunk = std::max<std::int64_t>(1, kNumbersOfAChunk / made.second.size(0))});
  if (stopped) return *stopped;
  if (!ProcessGroup::current().is_first()) return 0;

  const OneThread one_thread;
  model->to(torch::kDouble);
  model->set_theta(best_start(lcp, data.training, starts.left(1, errors).detach().to(torch::kDouble),
                              flags.model.start.finishing_iterations, flags.run.seed));
  model->to(flags.run.scalar_type());
  model->exact_rest = flags.model.exact_rest;
  write_model(out, nn::torchscript_bytes(model));
  nlohmann::json metrics = evaluate_model(out, flags.run, heldout, flags.block, flags.samples);
  const nlohmann::json friction = friction_metrics(model, flags.block);
  metrics["mu"] = friction["mu"];
  metrics.update(against_block({{"parameter_error", friction["parameter_error"]}}, heldout, flags.block));
  metrics.update(motion_identifiability(model, training).json());
  metrics.update(sticking_metrics(model, heldout));
  const nlohmann::json of_method = method.metrics(model, training);
  metrics.update(of_method);
  if (of_method.contains("objective_at_truth")) {
    metrics.update(against_block({{"objective_at_truth", of_method["objective_at_truth"]}}, heldout, flags.block));
  }
  metrics["training_samples"] = training.count();
  const auto unsolved = (model->step(training.v, training.u).status != 0).sum().item<std::int64_t>();
  metrics["training_unsolved"] = unsolved;
  const std::vector<double>& heldout_error = trainer.history()["heldout_rmse"];
  if (!flags.run.quiet && unsolved > 0) {
    std::cerr << "warning: the learned LCP has no solution in " << unsolved << " of " << training.count()
              << " training samples" << std::endl;
  }
  if (!flags.run.quiet && !(heldout_error.back() <= heldout_error.front())) {
    std::cerr << "warning: training diverged: the held-out error grew from " << heldout_error.front() << " to "
              << heldout_error.back() << " m/s; a smaller --learning-rate may help" << std::endl;
  }
  metrics["final_loss"] = trainer.history()["loss"].back();
  write_results(out, metrics, {"rollout.png", "training.png"});
  return 0;
}

}  // namespace lcp::training
