#include "sliding_block/evaluation.h"

#include <torch/autograd.h>
#include <torch/nn/module.h>
#include <torch/script.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <set>

#include "run/figures.h"
#include "run/files.h"
#include "run/random.h"
#include "run/text.h"
#include "sliding_block/trajectories.h"

namespace lcp::training {
namespace {

namespace fs = std::filesystem;
using torch::Tensor;

constexpr std::int64_t kSteps = 50;
constexpr std::int64_t kRollouts = 20;

// The same space by vectors that share as few names as they can: reduced row echelon form, largest pivots first.
Tensor simple_basis(const Tensor& null_space) {
  Tensor rows = null_space.t().clone();
  for (std::int64_t k = 0; k < rows.size(0); ++k) {
    const Tensor rest = rows.slice(0, k).abs();
    const auto at = rest.argmax().item<std::int64_t>();
    const std::int64_t pivot = k + at / rows.size(1), column = at % rows.size(1);
    if (pivot != k) {
      const Tensor row = rows[k].clone();
      rows[k] = rows[pivot];
      rows[pivot] = row;
    }
    rows[k] /= rows[k][column].clone();
    for (std::int64_t j = 0; j < rows.size(0); ++j) {
      if (j != k) rows[j] -= rows[j][column].clone() * rows[k];
    }
  }
  return rows;
}

// "M11 + M12 - W13": the first name with a plus.
std::string in_words(const Tensor& direction, const std::vector<std::string>& names) {
  std::string text;
  double sign = 0;
  for (std::size_t i = 0; i < names.size(); ++i) {
    double weight = direction[static_cast<std::int64_t>(i)].item<double>();
    if (std::abs(weight) < 1e-6) continue;
    if (sign == 0) sign = weight < 0 ? -1 : 1;
    weight *= sign;
    const std::string size = std::abs(std::abs(weight) - 1) < 1e-6 ? "" : short_number(std::abs(weight)) + " ";
    text += (text.empty() ? "" : weight < 0 ? " - " : " + ") + size + names[i];
  }
  return text;
}

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

void write_rollouts(const fs::path& path, const Rollout& rollout, double dt) {
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

std::int64_t unsolved(const Tensor& velocities) { return velocities.isnan().sum().item<std::int64_t>(); }

// What the console shows of a metric, in this order.
struct Shown {
  const char* key;
  const char* label;
  const char* unit;
  const char* otherwise;  // where it is no number
};
constexpr Shown kShown[] = {
    {"mu", "friction coefficient", "", "none"},
    {"stiffness", "stiffness", " N/m", "none"},
    {"heldout_rmse", "held-out rmse", " m/s", "none: some steps have no solution"},
    {"sticking_exact_zero_fraction", "exact zeros, sticking", "", "nothing sticks"},
    {"sticking_close_fraction", "  within dt mu g / 1000", "", "nothing sticks"},
    {"rollout_rmse", "rollout rmse", " m/s over 50 steps", "none: some steps have no solution"},
    {"parameter_error", "parameter error", " against the flags' block", "none"},
    {"max_row_error", "largest error of a row", "", "none"},
    {"objective", "objective", "", "none"},
    {"lower_bound", "  at least", "", "none"},
    {"objective_at_truth", "objective at the truth", "", "none"},
};

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

nlohmann::json evaluate_model(const RunFlags& run, const Samples& heldout, const PhysicsFlags& block) {
  const torch::NoGradGuard no_grad;
  torch::jit::Module model = torch::jit::load((run.out / "model.pt").string());
  const Tensor predicted = predict(model, heldout.v, heldout.u);
  const Rollout rollout = roll_out(model, run, block);
  write_rollouts(run.out / "rollouts.csv", rollout, block.dt);
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

void Gauge::add(const Tensor& residuals, const std::vector<std::string>& names) {
  const auto known = learning::identifiability(residuals);
  parameters_ += static_cast<std::int64_t>(names.size());
  rank_ += known.rank;
  condition_ = std::max(condition_, known.condition);
  const Tensor directions = simple_basis(known.null_space);
  for (std::int64_t k = 0; k < directions.size(0); ++k) directions_.push_back(in_words(directions[k], names));
}

nlohmann::json Gauge::json() const {
  return {{"parameters", parameters_},
          {"identifiable_parameters", rank_},
          {"condition", condition_},
          {"unidentifiable_directions", directions_}};
}

Tensor jacobian(const Tensor& outputs, const std::vector<Tensor>& parameters) {
  const Tensor flat = outputs.flatten();
  std::vector<Tensor> rows;
  for (std::int64_t k = 0; k < flat.size(0); ++k) {
    const auto gradients = torch::autograd::grad({flat[k]}, parameters, {}, /*retain_graph=*/true,
                                                 /*create_graph=*/false, /*allow_unused=*/true);
    std::vector<Tensor> row;
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      row.push_back((gradients[i].defined() ? gradients[i] : torch::zeros_like(parameters[i])).flatten());
    }
    rows.push_back(torch::cat(row).to(torch::kDouble));
  }
  return torch::stack(rows);
}

std::vector<std::string> parameter_names(const torch::nn::Module& module) {
  std::vector<std::string> names;
  for (const auto& parameter : module.named_parameters()) {
    const std::int64_t count = parameter.value().numel();
    for (std::int64_t k = 0; k < count; ++k) {
      names.push_back(parameter.key() + (count > 1 ? "[" + std::to_string(k) + "]" : ""));
    }
  }
  return names;
}

nlohmann::json to_json(const Tensor& x) {
  if (x.dim() == 0) return x.item<double>();
  nlohmann::json json = nlohmann::json::array();
  for (std::int64_t k = 0; k < x.size(0); ++k) json.push_back(to_json(x[k]));
  return json;
}

void conclude(const CommandLine& line, const RunFlags& run, const nlohmann::json& metrics) {
  write_json(run.out / "metrics.json", metrics);
  const bool drawn = draw_figures(line.program(), run.out, run.quiet);
  if (run.quiet) return;
  for (const Shown& shown : kShown) {
    if (!metrics.contains(shown.key) || metrics[shown.key].is_array()) continue;
    const auto& value = metrics[shown.key];
    const bool finite = value.is_number() && std::isfinite(value.get<double>());
    std::cout << padded(shown.label, 24) << (finite ? short_number(value.get<double>()) + shown.unit : shown.otherwise)
              << "\n";
  }
  if (metrics.contains("parameters")) {
    std::cout << "identifiable            " << metrics["identifiable_parameters"] << " of " << metrics["parameters"]
              << " parameters\n";
    for (const std::string direction : metrics["unidentifiable_directions"]) {
      std::cout << "  the data do not see   " << direction << "\n";
    }
  }
  for (const char* file : {"model.pt", "table.md", "metrics.json"}) {
    if (fs::exists(run.out / file)) std::cout << (run.out / file).string() << "\n";
  }
  if (drawn) {
    std::set<fs::path> figures;
    for (const auto& file : fs::directory_iterator(run.out / "figures")) figures.insert(file.path());
    for (const auto& figure : figures) std::cout << figure.string() << "\n";
  }
  std::cout << std::flush;
}

}  // namespace lcp::training
