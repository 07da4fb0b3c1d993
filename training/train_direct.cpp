// Learns f and G of a sliding block from velocities, inputs and known friction forces [Notes, 3.1.1].
#include <torch/script.h>
#include <torch/torch.h>

#include <cmath>
#include <filesystem>
#include <iostream>
#include <sstream>

#include "common/command_line.h"
#include "common/error.h"
#include "common/figures.h"
#include "common/files.h"
#include "common/random.h"
#include "common/sliding_block_data.h"
#include "common/trainer.h"
#include "lcp/learning/direct_loss.h"
#include "lcp/learning/identifiability.h"
#include "lcp/nn/direct_model.h"
#include "lcp/physics/sliding_block.h"

namespace {

using namespace lcp::training;
namespace learning = lcp::learning;
namespace physics = lcp::physics;
using torch::Tensor;

constexpr std::int64_t kSteps = 50;  // of a simulated trajectory and of a rollout
constexpr std::int64_t kRollouts = 20;
constexpr std::int64_t kHeldOutOneIn = 5;  // trajectories, or rows where the data are of one trajectory

struct Flags {
  RunFlags run;
  TrainingFlags training{.samples = 2000, .iterations = 4000, .learning_rate = 0.02, .data = {}};
  PhysicsFlags block;
  std::string network = "affine";
  std::int64_t hidden_units = 32;
  std::string head = "relu";
  std::vector<double> alpha = {learning::DirectLossWeights().prediction, learning::DirectLossWeights().complementarity,
                               learning::DirectLossWeights().nonnegativity};
  std::int64_t batch_size = 256;

  void add_to(CommandLine& line) {
    run.add_to(line);
    training.add_to(line);
    block.add_to(line);
    line.add<std::string>(
        "network", network, "Of f(v, u) and G(v, u): affine, or hidden (affine and a tanh layer)",
        [](const std::string& x) { return x == "affine" || x == "hidden" ? "" : "affine or hidden"; });
    line.add<std::int64_t>("hidden-units", hidden_units, "Width of the tanh layer", at_least_one);
    line.add<std::string>("head", head, "Of the predicted velocities in training: relu or none",
                          [](const std::string& x) { return x == "relu" || x == "none" ? "" : "relu or none"; });
    line.add<std::vector<double>>(
        "alpha", alpha,
        "Weights A1 A2 A3 of prediction error, complementarity (forces over their rms) and nonnegativity",
        [](const std::vector<double>& x) {
          const bool valid = x.size() == 3 && x[0] > 0 && x[1] >= 0 && x[2] >= 0 && std::isfinite(x[0] + x[1] + x[2]);
          return valid ? "" : "three finite numbers, the first > 0, the others >= 0";
        });
    line.add<std::int64_t>("batch-size", batch_size, "Samples of a minibatch", at_least_one);
  }

  torch::Dtype dtype() const { return run.dtype == "float32" ? torch::kFloat : torch::kDouble; }
};

constexpr double kNonlinearityWeight = 1;  // of DirectModel::nonlinearity in the loss

// Steps of a block, one a row.
struct Samples {
  Tensor v, u, v_next;  // [n]: m/s, N, m/s
  Tensor lambda;        // [n, 2]: lambda_plus, lambda_minus, N

  std::int64_t count() const { return v.size(0); }
  Tensor velocities() const { return torch::stack({v_next.relu(), (-v_next).relu()}, -1); }
  Samples at(const Tensor& rows) const {
    return {v.index({rows}), u.index({rows}), v_next.index({rows}), lambda.index({rows})};
  }
  Samples to(torch::Dtype dtype) const { return {v.to(dtype), u.to(dtype), v_next.to(dtype), lambda.to(dtype)}; }
};

struct Data {
  Samples training, heldout;
};

Data simulate(const Flags& flags) {
  const torch::NoGradGuard no_grad;
  const std::int64_t wanted = (flags.training.samples + kSteps - 1) / kSteps;
  const std::int64_t heldout = std::max<std::int64_t>(10, wanted / (kHeldOutOneIn - 1));
  const std::int64_t trajectories = wanted + heldout;
  const Tensor first = random_speeds(trajectories, flags.block, generator(flags.run.seed, Stream::kSpeeds));
  const Tensor u = random_forces(kSteps, trajectories, flags.block, generator(flags.run.seed, Stream::kForces));
  const auto solution =
      physics::simulate(first, u, sliding_block(flags.block), physics::SlidingBlockFormulation::kDirect);
  const Tensor v = torch::cat({first.unsqueeze(0), solution.step.v_next.slice(0, 0, -1)});
  const auto rows = [&](const Tensor& x, std::int64_t from, std::int64_t to) {
    return x.slice(1, from, to).t().flatten();
  };
  const auto samples = [&](std::int64_t from, std::int64_t to) {
    return Samples{
        rows(v, from, to), rows(u, from, to), rows(solution.step.v_next, from, to),
        torch::stack({rows(solution.step.lambda_plus, from, to), rows(solution.step.lambda_minus, from, to)}, -1)};
  };
  return {samples(0, wanted).at(torch::arange(flags.training.samples)), samples(wanted, trajectories)};
}

Data read(const Flags& flags) {
  const std::string& file = flags.training.data;
  const Table table = read_csv(file, {"v", "u", "v_next", "lambda_plus", "lambda_minus"}, {"trajectory"});
  const auto column = [&](const char* name) { return torch::tensor(table[name], torch::kDouble); };
  const Samples all = {column("v"), column("u"), column("v_next"),
                       torch::stack({column("lambda_plus"), column("lambda_minus")}, -1)};
  if (all.lambda.min().item<double>() >= 0 && all.lambda.max().item<double>() > 0) {
    throw UsageError(
        file +
        ": lambda_plus and lambda_minus are >= 0 in every row: these are physical friction forces, "
        "which no affine model fits; the direct formulation's are what simulate --formulation direct writes");
  }
  const double largest = all.lambda.max().item<double>();
  if (largest > flags.block.max_friction() * (1 + 1e-6) && !flags.run.quiet) {
    std::cerr << "warning: " << file << " has a friction force of " << largest
              << " N, above mu m g = " << flags.block.max_friction() << " N of --mu, --mass and --gravity" << std::endl;
  }
  Tensor group = torch::arange(all.count());
  if (table.has("trajectory")) {
    const Tensor trajectory = std::get<1>(torch::_unique(column("trajectory"), true, true));
    if (trajectory.max().item<std::int64_t>() + 1 >= kHeldOutOneIn) group = trajectory;
  }
  const Tensor heldout = group.remainder(kHeldOutOneIn) == kHeldOutOneIn - 1;
  if (!heldout.any().item<bool>()) {
    throw UsageError(file + ": needs at least " + std::to_string(kHeldOutOneIn) + " rows; has " +
                     std::to_string(all.count()));
  }
  return {all.at(heldout.logical_not().nonzero().squeeze(-1)), all.at(heldout.nonzero().squeeze(-1))};
}

// Each parameter of an affine f and G multiplies one of these in each output: (v, u, 1) x (1, lambda+, lambda-).
Tensor features(const Samples& samples) {
  const Tensor one = torch::ones_like(samples.v);
  const Tensor state = torch::stack({samples.v, samples.u, one}, -1);
  const Tensor force = torch::cat({one.unsqueeze(-1), samples.lambda}, -1);
  return (force.unsqueeze(-1) * state.unsqueeze(-2)).flatten(1);
}

const std::vector<std::string> kFeatureNames = {
    "v", "u", "1", "lambda_plus v", "lambda_plus u", "lambda_plus", "lambda_minus v", "lambda_minus u", "lambda_minus"};

// "0.71 lambda_plus + -0.71 v": the null directions in words.
std::vector<std::string> in_words(const Tensor& null_space) {
  std::vector<std::string> words;
  for (std::int64_t k = 0; k < null_space.size(1); ++k) {
    std::string text;
    for (std::int64_t i = 0; i < null_space.size(0); ++i) {
      const double weight = null_space[i][k].item<double>();
      if (std::abs(weight) < 1e-6) continue;
      char number[32];
      std::snprintf(number, sizeof number, "%.3g", weight);
      text +=
          (text.empty() ? "" : " + ") + std::string(number) + " [" + kFeatureNames[static_cast<std::size_t>(i)] + "]";
    }
    words.push_back(text);
  }
  return words;
}

double rmse(const Tensor& error) { return error.to(torch::kDouble).square().mean().sqrt().item<double>(); }

// Of a model.pt, as its user sees it: v_next of forward(v, u).
Tensor predict(torch::jit::Module& model, const Tensor& v, const Tensor& u) { return model.forward({v, u}).toTensor(); }

std::int64_t unsolved(const Tensor& velocities) { return velocities.isnan().sum().item<std::int64_t>(); }

// NaN where nothing sticks.
double exact_zero_fraction(const Tensor& predicted, const Tensor& truth) {
  const Tensor sticks = truth == 0;
  return (predicted.index({sticks}) == 0).to(torch::kDouble).mean().item<double>();
}

// Against the block of the flags: the largest error of f [m/s] and G [s/kg] over the samples.
double parameter_error(lcp::nn::DirectModel& model, const Samples& samples, const PhysicsFlags& block) {
  const Tensor free = samples.v + block.dt * samples.u / block.mass;
  const Tensor f = torch::stack({free, -free}, -1);
  const Tensor G = -block.dt / block.mass * torch::eye(2, samples.v.options()).flip(-1);
  return std::max((model->f_of(samples.v, samples.u) - f).abs().max().item<double>(),
                  (model->G_of(samples.v, samples.u) - G).abs().max().item<double>());
}

struct Rollout {
  Tensor start;            // [rollouts]
  Tensor u, exact, model;  // [steps, rollouts]
};

// The model and the exact stepper from the same start, under the same random forces.
Rollout roll_out(torch::jit::Module& model, const Flags& flags) {
  const Tensor start =
      random_speeds(kRollouts, flags.block, generator(flags.run.seed, Stream::kRolloutSpeeds)).to(flags.dtype());
  Tensor exact = start;
  Tensor learned = exact;
  const Tensor u = random_forces(kSteps, kRollouts, flags.block, generator(flags.run.seed, Stream::kRolloutForces))
                       .to(flags.dtype());
  const physics::SlidingBlock block = sliding_block(flags.block);
  std::vector<Tensor> all_exact, all_learned;
  for (std::int64_t k = 0; k < kSteps; ++k) {
    exact = physics::exact_step(exact, u[k], block).v_next;
    learned = predict(model, learned, u[k]);
    all_exact.push_back(exact);
    all_learned.push_back(learned);
  }
  return {start, u, torch::stack(all_exact), torch::stack(all_learned)};
}

void write_rollouts(const std::filesystem::path& path, const Rollout& rollout, double dt) {
  Table table;
  const auto add = [&](const char* name, const Tensor& x) { add_trajectories(table, name, x, kSteps, kRollouts); };
  add("rollout", torch::arange(kRollouts, torch::kDouble));
  add("time", (torch::arange(kSteps, torch::kDouble) + 1).unsqueeze(-1) * dt);
  add("v_start", rollout.start);
  add("u", rollout.u);
  add("v_exact", rollout.exact);
  add("v_model", rollout.model);
  write_csv(path, table);
}

int train_direct(int argc, const char* const* argv) {
  CommandLine line(
      "train_direct",
      "Learns f and G of a sliding block, v_next = f(v, u) + G(v, u) lambda, from velocities, input forces\n"
      "and known friction forces, and writes the learned LCP as a TorchScript model that can be stepped.");
  Flags flags;
  flags.add_to(line);
  line.footer(
      "Example: train_direct --mu 0.5 --seed 3 --out runs/mu05\n"
      "Data of your own: CSV with columns v,u,v_next,lambda_plus,lambda_minus (m/s, N, m/s, N, N), and\n"
      "optionally trajectory; one row in five, or one trajectory in five, is held out.");
  if (const auto status = line.parse(argc, argv)) return *status;
  if (line.given("samples") && !flags.training.data.empty()) {
    throw UsageError("--samples has no meaning with --data");
  }
  if (std::string& file = flags.training.data; !file.empty()) file = std::filesystem::weakly_canonical(file).string();
  Trainer trainer(line, flags.run, flags.training);
  const std::filesystem::path& out = flags.run.out;
  torch::set_num_threads(static_cast<int>(flags.run.threads));
  torch::manual_seed(generator(flags.run.seed, Stream::kParameters).current_seed());

  const Data data = flags.training.data.empty() ? simulate(flags) : read(flags);
  const Samples training = data.training.to(flags.dtype());
  const Samples heldout = data.heldout.to(flags.dtype());
  const auto scale = [](const Tensor& x) { return std::max(x.square().mean().sqrt().item<double>(), 1e-12); };
  lcp::nn::DirectModel model(lcp::nn::DirectModelOptions()
                                 .mass(flags.block.mass)
                                 .dt(flags.block.dt)
                                 .mu(flags.block.mu)
                                 .gravity(flags.block.gravity)
                                 .hidden(flags.network == "hidden" ? flags.hidden_units : 0)
                                 .velocity_scale(scale(data.training.v))
                                 .force_scale(std::max(scale(data.training.u), scale(data.training.lambda))));
  model->to(flags.dtype());

  const learning::DirectLossWeights weights{flags.alpha[0], flags.alpha[1], flags.alpha[2]};
  const bool relu = flags.head == "relu";
  const Tensor target = training.velocities();
  const Tensor unit_lambda = training.lambda / scale(data.training.lambda);  // so that A2 means the same for any block
  const auto loss = [&](const Tensor& rows) -> LossTerms {
    const Samples batch = training.at(rows);
    const auto terms = learning::direct_loss(model->forward(batch.v, batch.u, batch.lambda), target.index({rows}),
                                             unit_lambda.index({rows}), relu, weights);
    return {{"loss", terms.total + kNonlinearityWeight * model->nonlinearity()},
            {"prediction", terms.prediction},
            {"complementarity", terms.complementarity},
            {"nonnegativity", terms.nonnegativity}};
  };
  const auto heldout_error = [&] { return rmse(model->step(heldout.v, heldout.u).v_next - heldout.v_next); };
  const auto stopped =
      trainer.train(*model, training.count(), flags.batch_size,
                    fingerprint({data.training.v, data.training.u, data.training.v_next, data.training.lambda,
                                 data.heldout.v, data.heldout.u, data.heldout.v_next, data.heldout.lambda}),
                    loss, [&]() -> Figures {
                      return {{"heldout_rmse", heldout_error()}};
                    });
  if (stopped) return *stopped;

  // What is reported is what the written file does once it is loaded again.
  const torch::NoGradGuard no_grad;
  lcp::nn::save_torchscript(model, (out / "model.pt").string());
  torch::jit::Module script = torch::jit::load((out / "model.pt").string());
  const Tensor predicted = predict(script, heldout.v, heldout.u);
  const Rollout rollout = roll_out(script, flags);
  const auto known = learning::identifiability(features(data.training));
  const auto unknown = in_words(known.null_space);
  const Tensor with_force = model->forward(heldout.v, heldout.u, heldout.lambda);
  nlohmann::json metrics = {
      {"heldout_rmse", rmse(predicted - heldout.v_next)},
      {"sticking_exact_zero_fraction", exact_zero_fraction(predicted, heldout.v_next)},
      {"rollout_rmse", rmse(rollout.model - rollout.exact)},
      {"parameter_error", parameter_error(model, heldout, flags.block)},
      {"heldout_rmse_known_force", rmse((relu ? with_force.relu() : with_force) - heldout.velocities())},
      {"training_samples", training.count()},
      {"heldout_samples", heldout.count()},
      {"heldout_unsolved", unsolved(predicted)},
      {"rollout_unsolved", unsolved(rollout.model)},
      {"heldout_sticking_fraction", (heldout.v_next == 0).to(torch::kDouble).mean().item<double>()},
      {"identifiable_parameters", known.rank},
      {"parameters_per_output", static_cast<std::int64_t>(kFeatureNames.size())},
      {"feature_condition", known.condition},
      {"unidentifiable_directions", unknown},
      {"final_loss", trainer.history()["loss"].back()},
  };
  write_rollouts(out / "rollouts.csv", rollout, flags.block.dt);
  write_json(out / "metrics.json", metrics);
  if (!flags.run.quiet && (metrics["heldout_unsolved"] > 0 || metrics["rollout_unsolved"] > 0)) {
    std::cerr << "warning: the learned LCP has no solution in " << metrics["heldout_unsolved"] << " of "
              << heldout.count() << " held-out steps and " << metrics["rollout_unsolved"] << " of "
              << kSteps * kRollouts
              << " rollout steps; it needs more --iterations, or other --learning-rate or --samples" << std::endl;
  }
  const bool drawn = draw_figures("train_direct", out, flags.run.quiet);
  if (flags.run.quiet) return 0;

  const auto shown = [&](const char* name, const char* unit, const char* otherwise) {
    std::ostringstream text;
    if (const double value = metrics[name].get<double>(); std::isfinite(value)) {
      text << value << unit;
    } else {
      text << otherwise;
    }
    return text.str();
  };
  std::cout << "held-out rmse          " << shown("heldout_rmse", " m/s", "none: some steps have no solution") << "\n"
            << "exact zeros, sticking  " << shown("sticking_exact_zero_fraction", "", "nothing sticks") << "\n"
            << "rollout rmse           "
            << shown("rollout_rmse", " m/s over 50 steps", "none: some steps have no solution") << "\n"
            << "parameter error        " << shown("parameter_error", " against --mass, --dt", "none") << "\n"
            << "identifiable           " << known.rank << " of " << kFeatureNames.size()
            << " affine parameters of each output\n";
  for (const std::string& direction : unknown) std::cout << "  the data do not see   " << direction << "\n";
  std::cout << (out / "model.pt").string() << "\n" << (out / "metrics.json").string() << "\n";
  if (drawn) {
    std::cout << (out / "figures" / "rollout.png").string() << "\n"
              << (out / "figures" / "training.png").string() << "\n";
  }
  std::cout << std::flush;
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return lcp::training::guarded("train_direct", [&] { return train_direct(argc, argv); });
}
