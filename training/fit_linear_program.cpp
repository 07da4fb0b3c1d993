// Fits M and W of a sliding block's LCP to known contact forces by a linear program [Notes, 3.1.4].
#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <stdexcept>
#include <string>
#include <vector>

#include "common/command_line.h"
#include "common/error.h"
#include "common/evaluation.h"
#include "common/files.h"
#include "common/friction_model.h"
#include "common/random.h"
#include "common/samples.h"
#include "lcp/learning/linear_program.h"
#include "lcp/nn/traditional_model.h"
#include "linear_program/simplex.h"

namespace {

using namespace lcp::training;
namespace learning = lcp::learning;
using torch::Tensor;

constexpr double kNegligible = 1e-6;  // in the model's units

struct Flags {
  RunFlags run;
  SampleFlags samples{.known = Known::kContactForces, .samples = 300, .data = {}, .states = "mixed"};
  PhysicsFlags block{.mass = 1, .dt = 1, .mu = 1, .gravity = 1};
  double epsilon = 0;
  std::string normalization = "one_per_row";
  bool no_bias = false;
  double l1 = 0;
  std::string solver = "simplex";

  void add_to(CommandLine& line) {
    run.add_to(line);
    samples.add_to(line);
    block.add_to(line);
    line.add<double>("epsilon", epsilon, "What w is at least, with forces in units of mu m g and velocities of dt mu g",
                     nonnegative);
    line.add<std::string>(
        "normalization", normalization,
        "one_per_row holds M13 = M23 = 1 and M31 = -1; none leaves each row's scale open, and 0 a solution",
        [](const std::string& x) { return x == "one_per_row" || x == "none" ? "" : "one_per_row or none"; });
    line.add_switch("no-bias", no_bias, "Holds W13 = W23 = 0: the first two rows of q have no constant");
    line.add<double>("l1", l1, "Weight of the sum of |M| and |W| in the objective", nonnegative);
    line.add<std::string>("solver", solver, "simplex (a basic solution) or interior_point (a point inside them)",
                          [](const std::string& x) {
                            return x == "simplex" || x == "interior_point" ? "" : "simplex or interior_point";
                          });
  }
};

// [M|W] of the model's units in m/s, N and their quotients.
Tensor to_si(const Tensor& rows, const lcp::nn::TraditionalModel& model) {
  const double velocity = model->velocity_unit(), force = model->options.force_unit();
  const auto numbers = [](const std::vector<double>& x) { return at::tensor(x, at::kDouble); };
  return rows * numbers({velocity, velocity, force}).unsqueeze(-1) /
         numbers({force, force, velocity, velocity, force, 1});
}

learning::KnownEntries known_entries(const Flags& flags) {
  Tensor mask = held_numbers(flags.normalization);
  if (flags.no_bias) mask.slice(0, 0, 2).select(1, 5).fill_(true);
  return {mask, at::where(mask, lcp::nn::TraditionalModelImpl::true_rows(1), 0)};
}

std::vector<std::string> entries(std::int64_t row) {
  std::vector<std::string> names;
  for (const char* matrix : {"M", "W"}) {
    for (const char* column : {"1", "2", "3"}) names.push_back(matrix + std::to_string(row + 1) + column);
  }
  return names;
}

std::string short_number(double x) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g", std::abs(x) < kNegligible ? 0 : x);
  return text;
}

std::string interval(double lower, double upper) {
  return (std::isinf(lower) ? "(-inf" : "[" + short_number(lower)) + ", " +
         (std::isinf(upper) ? "inf)" : short_number(upper) + "]");
}

// "M12 = M11 - 2, W13 = -M11 + 1, M11 in (-inf, inf)": the solutions about x, where there is more than one.
std::string in_words(const Tensor& x, const OptimalSet& set, const std::vector<std::string>& names) {
  // The directions solved for one entry each.
  Tensor rows = set.directions.clone();
  std::vector<std::int64_t> free;
  for (std::int64_t k = 0; k < rows.size(0); ++k) {
    const Tensor sizes = rows.slice(0, k).abs();
    const Tensor columns = std::get<0>(sizes.max(0));
    const auto column = (columns >= (1 - kNegligible) * columns.max()).nonzero()[0].item<std::int64_t>();
    const std::int64_t pivot = k + sizes.select(1, column).argmax().item<std::int64_t>();
    const Tensor row = rows[pivot] / rows[pivot][column];
    rows[pivot] = rows[k].clone();
    rows -= rows.select(1, column).clone().unsqueeze(-1) * row;
    rows[k] = row;
    free.push_back(column);
  }
  std::string text;
  const auto add = [&](const std::string& part) { text += (text.empty() ? "" : ", ") + part; };
  for (std::int64_t j = 0; j < x.size(0); ++j) {
    const bool varies = rows.size(0) > 0 && rows.select(1, j).abs().max().item<double>() > kNegligible;
    if (!varies || std::find(free.begin(), free.end(), j) != free.end()) continue;
    std::string sum;
    const auto add_term = [&](double weight, const std::string& name) {
      if (std::abs(weight) < kNegligible) return;
      const bool one = !name.empty() && std::abs(std::abs(weight) - 1) < kNegligible;
      sum += sum.empty() ? (weight < 0 ? "-" : "") : (weight < 0 ? " - " : " + ");
      sum += one ? name : short_number(std::abs(weight)) + (name.empty() ? "" : " " + name);
    };
    double constant = x[j].item<double>();
    for (std::size_t k = 0; k < free.size(); ++k) {
      const double weight = rows[static_cast<std::int64_t>(k)][j].item<double>();
      constant -= weight * x[free[k]].item<double>();
      add_term(weight, names[static_cast<std::size_t>(free[k])]);
    }
    add_term(constant, "");
    add(names[static_cast<std::size_t>(j)] + " = " + sum);
  }
  for (const std::int64_t j : free) {
    add(names[static_cast<std::size_t>(j)] + " in " +
        interval(set.lower[j].item<double>(), set.upper[j].item<double>()));
  }
  return text;
}

// A row that holds for every force in every state, as that of M = 0, q = epsilon, and so says nothing about contact.
bool is_trivial(const Tensor& row) {
  return at::cat({row.slice(0, 0, 3), -row.slice(0, 3, 5).abs(), row.slice(0, 5)}).min().item<double>() > -kNegligible;
}

struct Fit {
  Tensor rows;                   // [3, 6], [M|W]
  double objective = 0;          // sum of lambda'w over the samples
  std::vector<OptimalSet> sets;  // of each row
};

Fit fit(const learning::LinearProgram& program, const Flags& flags) {
  const bool simplex = flags.solver == "simplex";
  std::vector<Tensor> rows;
  Fit result;
  for (std::int64_t i = 0; i < 3; ++i) {
    const learning::LinearProgram alone = learning::row_program(program, 3, i);
    const learning::LinearProgram whole = flags.l1 > 0 ? learning::with_l1(alone, flags.l1) : alone;
    const LinearProgramSolution solution =
        solve(whole, simplex ? LinearProgramMethod::kSimplex : LinearProgramMethod::kInteriorPoint);
    if (solution.status != LinearProgramStatus::kSolved) {
      const std::string row = "row " + std::to_string(i + 1);
      if (solve(whole).status == LinearProgramStatus::kInfeasible) {
        throw UsageError("--epsilon " + nlohmann::json(flags.epsilon).dump() + " is too much: no " + row +
                         " has w >= epsilon in every sample");
      }
      throw std::runtime_error("the solver found no " + row + (simplex ? "" : "; --solver simplex may"));
    }
    rows.push_back(solution.x.slice(0, 0, 6));
    result.objective += (alone.cost * rows.back()).sum().item<double>();
    result.sets.push_back(optimal_set(whole, 6));
  }
  result.rows = at::stack(rows);
  return result;
}

nlohmann::json list(const Tensor& x) {
  if (x.dim() == 0) return x.item<double>();
  nlohmann::json json = nlohmann::json::array();
  for (std::int64_t k = 0; k < x.size(0); ++k) json.push_back(list(x[k]));
  return json;
}

nlohmann::json families(const Fit& fit) {
  nlohmann::json json = nlohmann::json::array();
  for (std::int64_t i = 0; i < 3; ++i) {
    const OptimalSet& set = fit.sets[static_cast<std::size_t>(i)];
    json.push_back({{"row", i + 1},
                    {"dimension", set.directions.size(0)},
                    {"trivial", is_trivial(fit.rows[i])},
                    {"lower", list(set.lower)},
                    {"upper", list(set.upper)},
                    {"words", in_words(fit.rows[i], set, entries(i))}});
  }
  return json;
}

// What a fit that looks like any other must not hide.
void warn(const nlohmann::json& metrics, const Flags& flags, double samples) {
  for (const auto& family : metrics["families"]) {
    const std::string row = "warning: row " + family["row"].dump();
    if (family["trivial"]) {
      std::cerr << row << " is trivial: it holds for every force in every state"
                << (flags.normalization == "none" ? "; --normalization one_per_row excludes such rows" : "") << "\n";
    } else if (family["dimension"] > 0) {
      std::cerr << row << " is one of many that fit as well: " << family["words"].get<std::string>() << "\n";
    }
  }
  const double excess = metrics["objective"].get<double>() - metrics["lower_bound"].get<double>();
  if (flags.l1 == 0 && excess > kNegligible * samples) {
    std::cerr << "warning: no rows fit these forces: the objective " << short_number(metrics["objective"])
              << " is above its lower bound " << short_number(metrics["lower_bound"]) << "\n";
  }
}

int fit_linear_program(int argc, const char* const* argv) {
  CommandLine line(
      "fit_linear_program",
      "Fits M and W of a sliding block's LCP, w = M lambda + W (v, u, 1) with 0 <= lambda perp w >= 0, to\n"
      "known contact forces by a linear program, says which other M and W fit as well, and writes the\n"
      "learned LCP as a TorchScript model that can be stepped.");
  Flags flags;
  flags.add_to(line);
  line.footer(
      "Example: fit_linear_program --split maximal --out runs/maximal\n"
      "Data of your own: CSV with columns v,u,v_next,lambda_plus,lambda_minus,gamma (m/s, N, m/s, N, N, m/s), and\n"
      "optionally trajectory; one row in five, or one trajectory in five, is held out.");
  if (const auto status = line.parse(argc, argv)) return *status;
  flags.samples.settle(line);
  torch::set_num_threads(1);  // for the same bits with any --threads
  torch::manual_seed(generator(flags.run.seed, Stream::kParameters).current_seed());

  const torch::NoGradGuard no_grad;
  const Data data = load_data(flags.run, flags.block, flags.samples);
  if (data.training.gamma.min().item<double>() < 0) throw UsageError(flags.samples.data + ": gamma is negative");
  const double unit = flags.block.max_friction() > 0 ? flags.block.max_friction() : 1;
  lcp::nn::TraditionalModel model(lcp::nn::TraditionalModelOptions()
                                      .mass(flags.block.mass)
                                      .dt(flags.block.dt)
                                      .gravity(flags.block.gravity)
                                      .mu(flags.block.mu)
                                      .force_unit(unit));
  model->to(flags.run.scalar_type());
  const Tensor contact = solutions(model, data.training), state = states(model, data.training);
  const learning::KnownEntries known = known_entries(flags);
  const Fit fitted = fit(learning::complementarity_program(contact, state, known, flags.epsilon), flags);

  const std::filesystem::path& out = flags.run.out;
  std::error_code none;
  std::filesystem::remove(out / "metrics.json", none);  // until there is a new one, the folder holds two runs' results
  write_json(out / "config.json", line.config());
  model->learned.copy_(fitted.rows);
  model->hold(known.mask, known.values);
  fit_dynamics(model, data.training);
  lcp::nn::save_torchscript(model, (out / "model.pt").string());

  const double limit = flags.block.max_friction() / unit;
  const Tensor scaled = canonical_rows(fitted.rows, limit, false);
  nlohmann::json metrics = evaluate_model(flags.run, data.heldout.to(flags.run.scalar_type()), flags.block);
  metrics.update({
      {"rows", list(to_si(fitted.rows, model))},
      {"rows_in_units", list(fitted.rows)},
      {"true_rows_in_units", list(lcp::nn::TraditionalModelImpl::true_rows(limit))},
      {"force_unit", unit},
      {"velocity_unit", model->velocity_unit()},
      {"objective", fitted.objective},
      {"lower_bound", learning::lower_bound(contact, flags.epsilon).sum().item<double>()},
      {"families", families(fitted)},
      {"parameter_error", row_error(scaled, limit)},
      {"max_row_error", row_error(flags.normalization == "one_per_row" ? fitted.rows : scaled, limit)},
      {"training_samples", data.training.count()},
  });
  bool degenerate = false;
  for (const auto& family : metrics["families"]) degenerate |= family["trivial"] || family["dimension"] > 0;
  metrics["degenerate"] = degenerate;
  metrics.update(gauge_of_rows(model, data.training).json());
  if (!flags.run.quiet) warn(metrics, flags, static_cast<double>(data.training.count()));
  conclude(line, flags.run, metrics);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return lcp::training::guarded("fit_linear_program", [&] { return fit_linear_program(argc, argv); });
}
