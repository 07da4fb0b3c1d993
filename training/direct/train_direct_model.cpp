#include <ATen/ATen.h>
#include <torch/utils.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "direct/direct.h"
#include "lcp/learning/direct_loss.h"
#include "run/program.h"
#include "sliding_block/evaluation.h"
#include "sliding_block/samples.h"

namespace lcp::training {
namespace {

using nn::DirectForces;
using torch::Tensor;

constexpr learning::DirectLossWeights kWeights;
constexpr double kNonlinearityWeight = 1;  // the weight of DirectModel::nonlinearity in the loss
constexpr std::int64_t kNetworkSamples = 256;
constexpr double kSelectionWeight = 0.1;  // the weight of `selection_penalty` in the loss

struct Flags {
  explicit Flags(DirectForces kind_) : kind(kind_) {}

  DirectForces kind;
  RunFlags run;
  TrainingFlags training{.iterations = 2000, .learning_rate = 0.05};
  PhysicsFlags block;
  SampleFlags samples{.known_forces = kind == DirectForces::kSlack ? KnownForces::kSlack : KnownForces::kFriction,
                      .samples = 2000,
                      .data = {},
                      .states = "trajectories"};
  std::string network = "affine";
  std::int64_t hidden_units = 32;
  std::string head = "relu";
  bool no_bias = false;
  std::vector<double> alpha = {kWeights.prediction, kWeights.complementarity, kWeights.nonnegativity};
  std::int64_t batch_size = 256;
  StartFlags start{.start = "random"};
  double rest_below = -1;
  bool study = false;

  void add_to(CommandLine& line) {
    run.add_to(line);
    training.add_to(line);
    block.add_to(line);
    samples.add_to(line);
    line.add("network", network, "Form of f(v, u) and G(v, u): affine, or hidden (affine plus a tanh layer)",
             one_of({"affine", "hidden"}));
    line.add("hidden-units", hidden_units, "Width of the tanh layer", at_least_one);
    line.add("head", head, "Function that is applied to the predicted velocities in training: relu or none",
             one_of({"relu", "none"}));
    line.add_switch("no-bias", no_bias, "Learn f without a bias");
    line.add(
        "alpha", alpha,
        "Weights A1 A2 A3 of prediction error, complementarity (forces over their rms) and nonnegativity (of values "
        "before the head; with --forces physical and --head relu only of components that move)",
        [](const std::vector<double>& x) {
          const bool valid = x.size() == 3 && x[0] > 0 && x[1] >= 0 && x[2] >= 0 && std::isfinite(x[0] + x[1] + x[2]);
          return valid ? "" : "three finite numbers, the first > 0, the others >= 0";
        });
    line.add("batch-size", batch_size, "Samples of a minibatch", at_least_one);
    if (kind == DirectForces::kFriction) {
      start.add_to(line, "with --forces none, ");
      line.add("rest-below", rest_below,
               "Velocities of at most this size, m/s, count as rest with --forces none; -1: three times "
               "--velocity-noise",
               [](const double& x) { return x == -1 || nonnegative(x).empty() ? "" : "finite and >= 0, or -1"; });
      line.add_switch("study", study,
                      "Instead of training a model, compare losses, heads and kinds of force: table.md");
    }
  }

  void validate(const CommandLine& line) {
    if (study) {
      line.exclude({"learning-rate", "checkpoint-every", "resume",       "dtype",    "threads",
                    "data",          "states",           "forces",       "more-mus", "velocity-noise",
                    "force-noise",   "network",          "hidden-units", "head",     "no-bias",
                    "alpha",         "batch-size",       "start",        "starts",   "finishing-iterations",
                    "rest-below"},
                   "--study");
    }
    samples.validate(line);
    if (slack()) return;
    start.validate("");
    if (line.given("start") && !line.given("forces")) samples.forces = "none";
    if (from_motion()) {
      line.exclude({"head", "alpha", "more-mus"}, "--forces none");
      if (start.file()) line.exclude({"starts"}, "--start " + start.start);
      samples.known_forces = KnownForces::kNone;
      if (rest_below < 0) rest_below = 3 * samples.velocity_noise;
    } else {
      line.exclude({"start", "starts", "finishing-iterations", "rest-below"}, "known --forces");
    }
  }

  bool from_motion() const { return samples.forces == "none"; }
  std::int64_t hidden() const { return network == "hidden" ? hidden_units : 0; }
  bool slack() const { return kind == DirectForces::kSlack; }
  bool relu() const { return head == "relu"; }

  // Whether a resting component of the velocity is a censored observation: it only tells that the value before the relu
  // is <= 0.
  bool censored() const { return relu() && samples.forces == "physical"; }
};

std::string description(DirectForces kind) {
  return kind == DirectForces::kSlack
             ? "Learns f and G of a sliding block, v_next = f(v, u) + G(v, u) s, from velocities, input forces and\n"
               "the slack s = mu m g - lambda of known friction forces, and writes the learned LCP as a TorchScript\n"
               "model that can be stepped."
             : "Learns f and G of a sliding block, v_next = f(v, u) + G(v, u) lambda, from velocities, input forces\n"
               "and known friction forces, and writes the learned LCP as a TorchScript model that can be stepped.";
}

// Physical forces do not determine the effect of lambda+ on v+. With one friction coefficient, lambda- is constant
// while v+ > 0, so that its effect cannot be told from the bias of f. Of all f and G that fit, this penalty is 0 only
// for those without a bias in f and with a constant, antidiagonal G. The rows of their LCP are decoupled, so that it
// has a solution for every v and u.
Tensor selection_penalty(const nn::DirectModel& model) {
  const auto diagonal = model->G->affine->bias.unflatten(0, {2, 2}).diagonal();
  const Tensor size = model->G->affine->weight.abs().sum() + diagonal.abs().sum();
  return model->options.bias() ? size + model->f->affine->bias.abs().sum() : size;
}

// Which combinations of the parameters the data determine: of the coefficients of affine f and G, or near the result of
// all weights of the networks, by kNetworkSamples samples. A censored observation determines none.
IdentifiabilityReport identifiability(nn::DirectModel& model, const Samples& samples, const Tensor& p, bool censored) {
  const nn::DirectModelOptions& options = model->options;
  IdentifiabilityReport result;
  if (options.hidden() > 0) {
    const at::AutoGradMode with_gradients(true);
    const Samples some = samples.at(at::arange(std::min(samples.count(), kNetworkSamples)))
                             .to(model->parameters().front().scalar_type());
    const Tensor values = model->forward(some.v, some.u, p.slice(0, 0, some.count()).to(some.v.scalar_type()));
    const Tensor seen = some.velocities() > 0;
    result.add(jacobian(censored ? values.masked_select(seen) : values, model->parameters()), parameter_names(*model));
    return result;
  }
  const bool slack = options.forces() == DirectForces::kSlack;
  const std::string p_1 = slack ? "slack_minus" : "lambda_plus", p_2 = slack ? "slack_plus" : "lambda_minus";
  std::vector<std::string> terms = {"v", "u", "1", p_1 + " v", p_1 + " u", p_1, p_2 + " v", p_2 + " u", p_2};
  Tensor values = features(samples.v, samples.u, p);
  values = values.where(values.abs() > 1e-12 * values.abs().amax(0), 0);  // round-off of forces that are exactly 0
  if (!options.bias()) {
    terms.erase(terms.begin() + kBias);
    values = at::cat({values.slice(1, 0, kBias), values.slice(1, kBias + 1)}, 1);
  }
  const Tensor moves = samples.velocities() > 0;
  for (const std::int64_t k : {0, 1}) {
    std::vector<std::string> names = terms;
    for (std::string& name : names) name.insert(0, k == 0 ? "v+: " : "v-: ");
    result.add(censored ? values.index({moves.select(-1, k)}) : values, names);
  }
  return result;
}

}  // namespace

double parameter_error(nn::DirectModel& model, const Samples& samples, const PhysicsFlags& block) {
  const double c = block.dt / block.mass;
  const Tensor free = samples.v + c * samples.u;
  Tensor f = torch::stack({free, -free}, -1);
  Tensor G = c * torch::eye(2, samples.v.options());
  if (model->options.forces() == DirectForces::kSlack) {
    f = f - c * block.max_friction();
  } else {
    G = -G.flip(-1);
  }
  return std::max((model->f_of(samples.v, samples.u) - f).abs().max().item<double>(),
                  (model->G_of(samples.v, samples.u) - G).abs().max().item<double>());
}

int train_direct_model(DirectForces kind, int argc, const char* const* argv) {
  const std::string program = kind == DirectForces::kSlack ? "train_slack" : "train_direct";
  CommandLine line(program, description(kind));
  Flags flags(kind);
  flags.add_to(line);
  line.footer(
      "Example: " + program + " --mu 0.5 --seed 3 --out runs/mu05\n" +
      (flags.slack()
           ? "The slack of physical forces does not determine G, so that the learned LCP may have no solutions.\n"
           : "Physical forces need the relu, and do not determine f and G. Those without a bias in f and with\n"
             "a constant, antidiagonal G are learned. --forces none, or --start, learns f from v, u and v_next alone,\n"
             "without --mu; G, which motion does not determine, is dt / m.\n") +
      "Data of your own: CSV with columns v,u,v_next,lambda_plus,lambda_minus (m/s, N, m/s, N, N), and\n"
      "optionally trajectory; one row in five, or one trajectory in five, is held out." +
      kModelNote + kCheckpointNote);
  if (const auto status = line.parse(argc, argv)) return *status;
  flags.validate(line);
  if (flags.study) {
    study(line, flags.run, flags.training, flags.block, flags.samples);
    return 0;
  }
  if (flags.from_motion()) {
    return train_from_motion(line, flags.run, flags.training, flags.block, flags.samples, flags.start,
                             {flags.hidden(), !flags.no_bias, flags.batch_size, flags.rest_below});
  }
  FolderLock lock(flags.run.out);
  const std::optional<Checkpoint> checkpoint = resume(line, lock, flags.training.resume);
  torch::set_num_threads(static_cast<int>(flags.run.threads));
  torch::manual_seed(generator(flags.run.seed, Stream::kParameters).current_seed());

  const Data data = load_data(flags.run, flags.block, flags.samples);
  OutputFolder out(line, flags.run, std::move(lock));
  Trainer trainer(out, flags.run, flags.training, checkpoint);
  const Samples training = data.training.to(flags.run.scalar_type());
  const Samples heldout = data.heldout.to(flags.run.scalar_type());
  const auto scale = [](const Tensor& x) { return std::max(rmse(x), 1e-12); };
  auto options = options_of<nn::DirectModelOptions>(flags.block)
                     .forces(kind)
                     .bias(!flags.no_bias)
                     .hidden(flags.hidden())
                     .velocity_scale(scale(data.training.v));
  const Tensor exact_p = options.forces_of(data.training.lambda);
  nn::DirectModel model(options.force_scale(std::max(scale(data.training.u), scale(exact_p))));
  model->to(flags.run.scalar_type());

  const learning::DirectLossWeights weights{.prediction = flags.alpha[0],
                                            .complementarity = flags.alpha[1],
                                            .nonnegativity = flags.alpha[2],
                                            .resting = !flags.censored()};
  const bool select = flags.censored() && !flags.slack();
  const Tensor target = training.velocities();
  const Tensor p = exact_p.to(flags.run.scalar_type());
  const Tensor unit_p = p / scale(exact_p);  // so that A2 means the same for any block
  const auto loss = [&](const Tensor& rows, double) -> LossTerms {
    const Samples batch = training.at(rows);
    const auto terms = learning::direct_loss(model->forward(batch.v, batch.u, p.index({rows})), target.index({rows}),
                                             unit_p.index({rows}), flags.relu(), weights);
    Tensor total = terms.total + kNonlinearityWeight * model->nonlinearity();
    if (select) total = total + kSelectionWeight * selection_penalty(model);
    return {{"loss", total},
            {"prediction", terms.prediction},
            {"complementarity", terms.complementarity},
            {"nonnegativity", terms.nonnegativity}};
  };
  const auto evaluate = [&]() -> NamedValues {
    return {{"heldout_rmse", rmse(model->step(heldout.v, heldout.u).v_next - heldout.v_next)}};
  };
  if (const auto stopped =
          trainer.train(*model, training.count(), flags.batch_size, data.fingerprint(), loss, evaluate)) {
    return *stopped;
  }
  if (!ProcessGroup::current().is_first()) return 0;

  const OneThread one_thread;
  const torch::NoGradGuard no_grad;
  write_model(out, nn::torchscript_bytes(model));
  nlohmann::json metrics = evaluate_model(out, flags.run, heldout, flags.block, flags.samples);
  const Tensor h = model->forward(heldout.v, heldout.u, model->options.forces_of(heldout.lambda));
  metrics.update(
      against_block({{"parameter_error", parameter_error(model, heldout, flags.block)}}, heldout, flags.block));
  metrics.update({
      {"heldout_rmse_known_force", rmse((flags.relu() ? h.relu() : h) - heldout.velocities())},
      {"training_samples", training.count()},
      {"final_loss", loss(at::arange(training.count()), 1).front().second.item<double>()},
  });
  metrics.update(identifiability(model, data.training, exact_p, flags.censored()).json());
  write_results(out, metrics, {"rollout.png", "training.png"});
  return 0;
}

}  // namespace lcp::training
