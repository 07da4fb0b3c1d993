#include "friction/train_friction_model.h"

#include <ATen/ATen.h>
#include <torch/utils.h>

#include <utility>

#include "run/error.h"
#include "run/one_thread.h"
#include "run/output_folder.h"
#include "run/results.h"
#include "sliding_block/evaluation.h"

namespace lcp::training {
void FrictionFlags::add_to(CommandLine& line) {
  run.add_to(line);
  samples.add_to(line);
  training.add_to(line);
  block.add_to(line);
  model.add_to(line);
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
  if (flags.block.gravity == 0) throw UsageError("--gravity must be > 0: m g is the unit of force; got 0");
  FolderLock lock(flags.run.out);
  const std::optional<Checkpoint> checkpoint = resume(line, lock, flags.training);
  torch::set_num_threads(static_cast<int>(flags.run.threads));

  const Data data = load_data(flags.run, flags.block, flags.samples);
  OutputFolder out(line, flags.run, std::move(lock));
  Trainer trainer(out, flags.run, flags.training, checkpoint);
  nn::TraditionalModel model = flags.model.make(flags.run, flags.block);
  const Samples training = data.training.to(flags.run.scalar_type());
  const Samples heldout = data.heldout.to(flags.run.scalar_type());
  const auto stopped = trainer.train(
      *model, training.count(), training.count(), data.fingerprint(),
      [&](const torch::Tensor& rows, double done) {
        LossTerms terms = method.loss(model, training.at(rows), done);
        terms.front().second = terms.front().second + flags.model.nonlinearity * model->nonlinearity();
        return terms;
      },
      [&] {
        NamedValues figures = {{"heldout_rmse", rmse(model->step(heldout.v, heldout.u).v_next - heldout.v_next)}};
        const nlohmann::json friction = friction_metrics(model, flags.block);
        if (friction["mu"].is_number()) figures.emplace_back("mu", friction["mu"].get<double>());
        for (const auto& figure : method.report(model, training)) figures.push_back(figure);
        return figures;
      });
  if (stopped) return *stopped;

  const OneThread one_thread;
  model->exact_rest = flags.model.exact_rest;
  out.write("model.pt", nn::torchscript_bytes(model));
  nlohmann::json metrics = evaluate_model(out, flags.run, heldout, flags.block);
  metrics.update(friction_metrics(model, flags.block));
  metrics.update(motion_identifiability(model, training).json());
  metrics.update(sticking_metrics(model, heldout));
  metrics.update(method.metrics(model, training));
  metrics["training_samples"] = training.count();
  metrics["final_loss"] = trainer.history()["loss"].back();
  write_results(out, metrics, {"rollout.png", "training.png"});
  return 0;
}

}  // namespace lcp::training
