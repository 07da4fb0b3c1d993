#include <ATen/ATen.h>
#include <torch/optim/adam.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "direct/direct.h"
#include "lcp/learning/direct_loss.h"
#include "lcp/learning/identifiability.h"
#include "lcp/nn/direct_model.h"
#include "run/program.h"
#include "sliding_block/evaluation.h"

namespace lcp::training {
namespace {

using torch::Tensor;

constexpr double kNoise = 1e-3;  // standard deviation on v_next, m/s
constexpr double kLearningRate = 0.02;
constexpr std::int64_t kStarts = 5;   // random starts of Adam for each fit
constexpr std::int64_t kDraws = 200;  // random subsets of a few samples

enum Source { kFictitious, kPhysical, kPhysicalOfThreeMus, kNoisyFictitious };
constexpr const char* kSourceNames[] = {"fictitious", "physical", "physical of three mu", "fictitious, noisy v_next"};
constexpr nn::DirectForces kLambda = nn::DirectForces::kFriction, kSlack = nn::DirectForces::kSlack;
enum Head { kNoHead, kRelu };

// The coefficients of f and G that a fit learns, as indices of `features`.
struct Coefficients {
  const char* name;
  std::vector<std::int64_t> indices;

  Tensor index() const { return at::tensor(at::IntArrayRef(indices)); }
  Tensor of(const Tensor& features) const { return features.index_select(1, index()); }
};
const Coefficients kConstantG = {"f, G", {0, 1, 2, 5, 8}};
const Coefficients kAffineG = {"f, G(v, u)", {0, 1, 2, 3, 4, 5, 6, 7, 8}};
const Coefficients kNoBias = {"f without bias, G", {0, 1, 5, 8}};
const Coefficients kNoForce = {"f", {0, 1, 2}};

using Loss = std::optional<learning::DirectLossWeights>;
const Loss kLeastSquares = std::nullopt;
Loss plain(double a2, double a3) { return {{1, a2, a3}}; }
Loss squared(double a2, double a3) { return {{1, a2, a3, /*squared=*/true}}; }
Loss of_moving(double a2, double a3) { return {{1, a2, a3, /*squared=*/false, /*resting=*/false}}; }

struct Fit {
  const char* part;
  const char* claim;
  Source source;
  nn::DirectForces forces;
  const Coefficients& learned;
  Head head;
  Loss loss;
};

// In [Notes] the nonnegativity term is a function of the relu's output, where it is always 0. Here it is one of the
// input.
const Fit kFits[] = {
    {"a", "Fictitious forces determine f and G", kFictitious, kLambda, kConstantG, kNoHead, kLeastSquares},
    {"a", "Fictitious forces determine a G affine in v and u", kFictitious, kLambda, kAffineG, kNoHead, kLeastSquares},
    {"a", "Complementarity biases a fit of squared errors", kFictitious, kLambda, kConstantG, kNoHead,
     squared(0.1, 0.1)},
    {"a", "More weight on it leads to f = G = 0", kFictitious, kLambda, kConstantG, kNoHead, squared(1, 1)},
    {"a", "A fit of unsquared errors is not biased", kFictitious, kLambda, kConstantG, kNoHead, plain(0.1, 0.1)},
    {"a", "More weight leads this fit to f = G = 0, too", kFictitious, kLambda, kConstantG, kNoHead, plain(1, 1)},
    {"a", "A relu is exactly 0 at rest; f and G are not unique", kFictitious, kLambda, kConstantG, kRelu, plain(0, 0)},
    {"a", "Nonnegativity before the relu determines f and G", kFictitious, kLambda, kConstantG, kRelu, plain(0.01, 1)},
    {"b", "No constant G fits physical forces", kPhysical, kLambda, kConstantG, kNoHead, kLeastSquares},
    {"b", "A G affine in v and u nearly fits them", kPhysical, kLambda, kAffineG, kNoHead, kLeastSquares},
    {"b", "A relu fits them; f and G are not unique", kPhysical, kLambda, kConstantG, kRelu, plain(0, 0)},
    {"b", "Nonnegativity where the block moves loses no start", kPhysical, kLambda, kConstantG, kRelu, of_moving(0, 1)},
    {"b", "with any weights", kPhysical, kLambda, kConstantG, kRelu, of_moving(1, 1)},
    {"b", "Three mu determine all but G's diagonal", kPhysicalOfThreeMus, kLambda, kConstantG, kRelu, of_moving(0, 1)},
    {"c", "With noisy data only the LCP is exactly 0 at rest", kNoisyFictitious, kLambda, kConstantG, kNoHead,
     kLeastSquares},
    {"c", "A relu is exactly 0 at rest, too", kNoisyFictitious, kLambda, kConstantG, kRelu, plain(0, 0)},
    {"d", "With friction forces f needs no bias", kFictitious, kLambda, kNoBias, kNoHead, kLeastSquares},
    {"d", "With slack f needs a bias", kFictitious, kSlack, kNoBias, kNoHead, kLeastSquares},
    {"e", "Without known forces no sticking is predicted", kFictitious, kLambda, kNoForce, kNoHead, kLeastSquares},
    {"f", "Slack determines f and G", kFictitious, kSlack, kConstantG, kNoHead, kLeastSquares},
    {"f", "with any weights", kFictitious, kSlack, kConstantG, kNoHead, plain(0.1, 0.1)},
    {"f", "with any weights", kFictitious, kSlack, kConstantG, kNoHead, plain(1, 1)},
    {"f", "No constant G fits slack of physical forces", kPhysical, kSlack, kConstantG, kNoHead, kLeastSquares},
    {"f", "With a relu f and G are not unique; starts may be lost", kFictitious, kSlack, kConstantG, kRelu,
     plain(0, 0)},
    {"f", "The same with complementarity", kFictitious, kSlack, kConstantG, kRelu, plain(1, 0)},
    {"f", "Nonnegativity before the relu prevents both", kFictitious, kSlack, kConstantG, kRelu, plain(0.01, 1)},
};

// [f|G] of the block in the order of `features`: [2, 9].
Tensor truth(const PhysicsFlags& block, nn::DirectForces forces) {
  const bool slack = forces == kSlack;
  const double c = block.dt / block.mass;
  const double bias = slack ? -c * block.max_friction() : 0, diagonal = slack ? c : 0, off_diagonal = slack ? 0 : -c;
  return at::tensor({1., c, bias, 0., 0., diagonal, 0., 0., off_diagonal,  //
                     -1., -c, bias, 0., 0., off_diagonal, 0., 0., diagonal})
      .view({2, 9});
}

nn::DirectModel model_of(const Tensor& rows, const nn::DirectModelOptions& options) {
  nn::DirectModel model(options);
  model->to(torch::kDouble);
  const torch::NoGradGuard no_grad;
  const auto put = [](nn::StateMap& map, const Tensor& x) {
    map->affine->weight.copy_(x.slice(1, 0, 2));
    map->affine->bias.copy_(x.select(1, 2));
  };
  put(model->f, rows.slice(1, 0, 3));
  put(model->G, rows.slice(1, 3).reshape({4, 3}));
  return model;
}

// The W: [..., k, m] that minimises |X W - Y|, X: [..., n, k], Y: [..., n, m], by modified Gram-Schmidt on [X Y], which
// is backward stable. LAPACK is not used, since its rounding depends on the alignment of memory.
Tensor least_squares(const Tensor& X, const Tensor& Y) {
  const std::int64_t k = X.size(-1);
  Tensor rest = at::cat({X, Y}, -1);
  std::vector<Tensor> rows;  // of [R | Q'Y], each from its diagonal entry on
  for (std::int64_t i = 0; i < k; ++i) {
    const Tensor x = rest.select(-1, 0);
    const Tensor q = (x / x.square().sum(-1, true).sqrt()).unsqueeze(-1);
    rows.push_back((q * rest).sum(-2));
    rest = (rest - q * rows.back().unsqueeze(-2)).slice(-1, 1);
  }
  std::vector<Tensor> W;  // the rows of the solution, from the last on
  for (std::int64_t i = k - 1; i >= 0; --i) {
    const Tensor& row = rows[static_cast<std::size_t>(i)];
    Tensor right = row.slice(-1, k - i);
    for (std::size_t j = 0; j < W.size(); ++j) right = right - row.slice(-1, k - i - 1 - j, k - i - j) * W[j];
    W.push_back(right / row.slice(-1, 0, 1));
  }
  std::reverse(W.begin(), W.end());
  return at::stack(W, -2);
}

struct Fitted {
  Tensor W;               // [features, 2]
  std::int64_t lost = 0;  // number of starts from which a component of the prediction ends as 0 in all samples
};

// Minimises the loss of all samples from several random starts at the same time, and returns the best fit.
//   X: [n, features].
Fitted adam(const Tensor& X, const Tensor& target, const Tensor& p, const Fit& fit, const TrainingFlags& flags,
            at::Generator generator) {
  const Tensor scale = X.square().mean(0).sqrt().clamp_min(1e-12).unsqueeze(-1);
  const Tensor scaled = X / scale.t();
  const Tensor unit_p = p / std::max(rmse(p), 1e-12);  // scaled as in train_direct, so that the weights mean the same
  const bool relu = fit.head == kRelu;
  Tensor W = (0.1 * at::randn({X.size(1), 2 * kStarts}, std::move(generator), at::kDouble)).requires_grad_();
  const auto predict = [&] { return at::mm(scaled, W).unflatten(-1, {kStarts, 2}); };
  torch::optim::Adam optimizer({W}, torch::optim::AdamOptions(kLearningRate));
  for (std::int64_t k = 0; k < flags.iterations; ++k) {
    const double done = static_cast<double>(k) / static_cast<double>(flags.iterations);
    for (auto& group : optimizer.param_groups()) {
      group.options().set_lr(cosine_step_size(kLearningRate, done));
    }
    optimizer.zero_grad();
    learning::direct_loss(predict(), target.unsqueeze(1), unit_p.unsqueeze(1), relu, *fit.loss).total.backward();
    optimizer.step();
  }
  const torch::NoGradGuard no_grad;
  const Tensor h = predict();
  double least = 0;
  Fitted best;
  for (std::int64_t k = 0; k < kStarts; ++k) {
    const Tensor prediction = h.select(1, k);
    if (relu && (prediction.amax(0) <= 0).any().item<bool>()) ++best.lost;
    const double loss = learning::direct_loss(prediction, target, unit_p, relu, *fit.loss).total.item<double>();
    if (k == 0 || loss < least) {
      least = loss;
      best.W = W.unflatten(-1, {kStarts, 2}).select(1, k) / scale;
    }
  }
  return best;
}

Data load(Source source, const RunFlags& run, const PhysicsFlags& block, SampleFlags flags) {
  const bool physical = source == kPhysical || source == kPhysicalOfThreeMus;
  flags.forces = physical ? "physical" : "fictitious";
  if (source == kPhysicalOfThreeMus) flags.more_mus = {block.mu / 3, 2 * block.mu};
  if (source == kNoisyFictitious) flags.velocity_noise = kNoise;
  return load_data(run, block, flags);
}

std::string loss_of(const Fit& fit) {
  if (!fit.loss) return "least squares";
  char text[128];
  std::snprintf(text, sizeof text, "%s (%g, %g, %g%s)%s", fit.loss->squared ? "squared" : "plain", fit.loss->prediction,
                fit.loss->complementarity, fit.loss->nonnegativity, fit.loss->resting ? "" : " of what moves",
                fit.head == kRelu ? ", relu" : "");
  return text;
}

nlohmann::json measure(const Fit& fit, const Data& data, const TrainingFlags& flags, const PhysicsFlags& block,
                       at::Generator generator) {
  const nn::DirectModelOptions model_options = options_of<nn::DirectModelOptions>(block).forces(fit.forces);
  const Samples &training = data.training, &heldout = data.heldout;
  const Tensor p = model_options.forces_of(training.lambda);
  const Tensor X = fit.learned.of(features(training.v, training.u, p));
  const Tensor target = training.velocities();
  const Fitted fitted =
      fit.loss ? adam(X, target, p, fit, flags, std::move(generator)) : Fitted{least_squares(X, target)};

  const torch::NoGradGuard no_grad;
  const Tensor rows = at::zeros({2, 9}, at::kDouble).index_copy(1, fit.learned.index(), fitted.W.t());
  Tensor error = (rows - truth(block, fit.forces)).abs();
  const double largest = error.max().item<double>();
  error[0][5] = error[1][8] = 0;
  nn::DirectModel model = model_of(rows, model_options);
  const Tensor h = model->forward(heldout.v, heldout.u, model_options.forces_of(heldout.lambda));
  const Tensor x = fit.head == kRelu ? h.relu() : h;
  const Tensor v = x.select(-1, 0) - x.select(-1, 1);
  const Tensor lcp = model->step(heldout.v, heldout.u).v_next;
  const double close = block.dt * block.max_friction() / block.mass / 30;
  nlohmann::json result = {
      {"part", fit.part},
      {"claim", fit.claim},
      {"forces", (fit.forces == kSlack ? "slack of " : "") + std::string(kSourceNames[fit.source])},
      {"learned", fit.learned.name},
      {"loss", loss_of(fit)},
      {"rmse", rmse(x - heldout.velocities())},
      {"net_rmse", rmse(v - heldout.v_next)},
      {"parameter_error", largest},
      {"parameter_error_beside_diagonal", error.max().item<double>()},
      {"exact_zero_fraction", sticking_fraction(v, heldout.v_next, 0)},
      {"close_fraction", sticking_fraction(v, heldout.v_next, close)},
      {"lcp_rmse", rmse(lcp - heldout.v_next)},
      {"lcp_exact_zero_fraction", sticking_fraction(lcp, heldout.v_next, 0)},
  };
  if (fit.loss) result["lost_starts"] = fitted.lost;
  return result;
}

// Properties of the data themselves, and how often a few samples suffice to determine f and G.
nlohmann::json facts(const Data& data, const Data& physical, const Data& of_three_mus, const PhysicsFlags& block,
                     at::Generator generator) {
  nlohmann::json rows;
  const auto add = [&](const char* part, const std::string& what, double value) {
    rows.push_back({{"part", part}, {"claim", what}, {"measured", value}});
  };
  const Samples& s = data.training;
  const auto mean = [](const Tensor& x) { return x.to(torch::kDouble).mean().item<double>(); };
  const Tensor x = s.velocities();
  const double product = mean((s.lambda * x).abs().sum(-1));
  add("a", "share of negative fictitious forces", mean(s.lambda < 0));
  add("a", "complementarity at the truth, N m/s", product);
  add("a", "A2 from which f = G = 0 is better than the truth, A1 = 1", mean(x.norm(2, -1)) * rmse(s.lambda) / product);
  for (const Coefficients* learned : {&kConstantG, &kAffineG}) {
    const Tensor X = learned->of(features(s.v, s.u, s.lambda));
    const auto known = learning::identifiability(X);
    add("a", std::string("rank of the features of ") + learned->name, static_cast<double>(known.rank));
    add("a", std::string("condition of the features of ") + learned->name + ", each scaled to length 1",
        known.condition);
    const Tensor W = learned->of(truth(block, kLambda)).t();
    for (const std::int64_t count : {10, 20, 40}) {
      const Tensor draws = at::randint(s.count(), {kDraws, count}, generator, at::kLong);
      const Tensor error = least_squares(X.index({draws}), x.index({draws})) - W;
      add("a", "share of draws of " + std::to_string(count) + " samples that give " + learned->name + " to 1e-6",
          mean(error.abs().amax({1, 2}) < 1e-6));
    }
  }
  for (const auto& [name, part] : {std::pair{"one friction coefficient", &physical}, {"three", &of_three_mus}}) {
    const Samples moving = part->training.at(part->training.v_next > 0);
    const Tensor X = kConstantG.of(features(moving.v, moving.u, moving.lambda));
    add("b", std::string("of the 5 numbers of v+, those that samples with v+ > 0 determine, ") + name,
        static_cast<double>(learning::identifiability(X).rank));
  }
  add("e", "standard deviation of v_next, m/s", data.heldout.v_next.std().item<double>());
  return rows;
}

const std::vector<MarkdownColumn> kColumns = {
    {"part", ""},
    {"claim", "claim"},
    {"forces", "forces"},
    {"learned", "learned"},
    {"loss", "loss"},
    {"rmse", "rmse of v+, v- [m/s]"},
    {"net_rmse", "of v+ - v-"},
    {"parameter_error", "error of f, G"},
    {"parameter_error_beside_diagonal", "without G's diagonal"},
    {"exact_zero_fraction", "exactly 0 at rest", true},
    {"close_fraction", "within dt mu g / 30", true},
    {"lost_starts", "lost starts"},
    {"lcp_rmse", "rmse of the LCP [m/s]"},
    {"lcp_exact_zero_fraction", "LCP exactly 0 at rest", true},
};
const std::vector<MarkdownColumn> kFactColumns = {{"part", ""}, {"claim", "of the data"}, {"measured", "measured"}};

}  // namespace

void study(const CommandLine& line, const RunFlags& run, const TrainingFlags& training, const PhysicsFlags& block,
           const SampleFlags& samples) {
  if (std::filesystem::exists(run.out / "checkpoint.pt")) {
    throw UsageError("--out " + run.out.string() + " holds a trained model; --study needs another folder");
  }
  OutputFolder out(line, run);
  const OneThread one_thread;
  nlohmann::json fits;
  const auto count = static_cast<std::int64_t>(std::size(kFits));
  {
    Progress progress("fit", 0, count, run.quiet);
    const auto found = divide_tasks(count, /*threads=*/1, [&](std::int64_t k) {
      const Fit& fit = kFits[k];
      nlohmann::json row =
          measure(fit, load(fit.source, run, block, samples), training, block, generator(run.seed, Stream::kStarts, k));
      progress.show(k + 1, fit.claim);
      return Checkpoint{std::move(row), {}};
    });
    for (const Checkpoint& fit : found) fits.push_back(fit.state);
  }
  if (!ProcessGroup::current().is_first()) return;
  const auto data = [&](Source source) { return load(source, run, block, samples); };
  const nlohmann::json known = facts(data(kFictitious), data(kPhysical), data(kPhysicalOfThreeMus), block,
                                     generator(run.seed, Stream::kStarts, count));

  const std::string text = "# Learning f and G from known friction forces\n\n`train_direct --study --seed " +
                           std::to_string(run.seed) + " --samples " + std::to_string(samples.samples) +
                           " --iterations " + std::to_string(training.iterations) + R"(`

* learned: which coefficients are learned, with G constant or affine in v and u; the others are 0.
* loss: plain (the norm of the error) or squared, with the weights (A1, A2, A3). Of )" +
                           std::to_string(kStarts) + R"( random starts the
  best is shown. A start is lost if it ends with v+ or v- equal to 0 after the relu in all samples.
* rmse: that of (v+, v-) = f + G times the known forces, over held-out samples; for the LCP that of v_next, without known
  forces.
* error of f, G: the largest error of a coefficient, SI units.
* exactly 0 at rest: the share of the steps ending at rest for which exactly 0 is predicted.

)" + markdown(fits, kColumns) +
                           "\n" + markdown(known, kFactColumns);
  out.write_json("table.json", {{"fits", fits}, {"data", known}});
  out.write("table.md", text);
  const auto figures = draw_figures(out, {"study.png"});
  if (run.quiet) return;
  std::cout << text << "\n" << (out / "table.md").string() << "\n" << (out / "table.json").string() << "\n";
  for (const auto& figure : figures) std::cout << figure.string() << "\n";
  std::cout << std::flush;
}

}  // namespace lcp::training
