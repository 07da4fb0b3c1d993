// Counts how often a block that friction holds remains at rest if M and q of its LCP are perturbed [Notes, 3.2].
//
//   [Notes] Pfrommer: LCP Notes, 2019 (unpublished; docs/systems.md), sections 3.2, 3.2.1 and 3.2.2.
#include <ATen/ATen.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <iostream>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "lcp/nn/traditional_model.h"
#include "lcp/physics/sliding_block.h"
#include "noise/perturbed_lcp.h"
#include "run/program.h"

namespace {

using namespace lcp::training;
namespace physics = lcp::physics;
using physics::Problem;
using torch::Tensor;

// A kind of noise, by the parts of the LCP that it perturbs.
struct Noise {
  const char* name;
  bool M, q;  // every entry
  bool mu;    // the friction limit mu m g, which is the third entry of q
};
constexpr std::array<Noise, 4> kNoises = {
    {{"q", false, true, false}, {"M", true, false, false}, {"M and q", true, true, false}, {"mu", false, false, true}}};

// A set of steps to perturb, in the units of Study.
struct State {
  std::string name, description;
  Tensor v, u;  // [draws]
};

// What noise of one kind and size does to the steps of one State.
struct Measurement {
  std::size_t state, noise;                                // indices in Study::states and kNoises
  double sigma;                                            // standard deviation of the noise
  std::vector<std::pair<std::string, double>> statistics;  // fractions of the steps, errors of the velocity
  // The quantiles at 0, 1 / kQuantiles, ..., 1 of |v_next - exact| / sigma of the solved steps, [kQuantiles + 1].
  Tensor errors;
  double closed_form_error;  // largest error of the velocity by biased_friction, where M is not perturbed

  double operator[](const std::string& name) const;  // throws std::out_of_range

  // All but `state`, `noise` and `sigma`, and back. `load` throws std::exception where there is none.
  Checkpoint save() const;
  void load(const Checkpoint& checkpoint);
};
constexpr std::int64_t kQuantiles = 50;  // errors.csv has kQuantiles + 1 rows for each Measurement

constexpr double kChange = 0.1;  // added to the entry or subtracted from it
constexpr std::array<std::pair<double, double>, 3> kSingleEntryStates = {{{0, 0}, {0, 0.3}, {0.2, -0.5}}};  // v, u

// The input and the results of the study, in units in which dt = m = mu g = 1: velocities in dt mu g, forces in mu m
// g. In these units noise of a given size means the same for every block.
struct Study {
  const RunFlags& run;
  const PhysicsFlags& block;
  std::vector<State> states;
  std::vector<Measurement> measurements = {};
  Table single_entries = {};  // see change_single_entries
  Table biased_steps = {};    // see biased_steps

  double unit_velocity() const { return block.dt * block.mu * block.gravity; }  // m/s
  double sticking_tolerance() const;                                            // a step sticks where |v_next| is less
};

const physics::SlidingBlock& unit_block() {
  static const auto block = physics::SlidingBlock::of(1, 1, 1, 1);
  return block;
}

Tensor force(const Tensor& z) { return z.select(-1, 0) - z.select(-1, 1); }

Tensor solve(const Problem& problem, const char* method) {
  lcp::SolveOptions options;
  options.method = method;
  return lcp::solve(problem.M, problem.q, options).z;
}

double fraction(const Tensor& mask) { return mask.to(torch::kDouble).mean().item<double>(); }

Problem perturbed(Problem problem, const Noise& noise, double sigma, std::int64_t seed, std::int64_t k) {
  const std::int64_t draws = problem.q.size(0);
  const auto normal = [&](Stream stream, at::IntArrayRef shape) {
    return sigma * at::randn(shape, generator(seed, stream, k), torch::kDouble).to(problem.q.scalar_type());
  };
  if (noise.M) problem.M = problem.M + normal(Stream::kMatrixNoise, {draws, 3, 3});
  if (noise.q) problem.q = problem.q + normal(Stream::kVectorNoise, {draws, 3});
  if (noise.mu) problem.q = problem.q + at::constant_pad_nd(normal(Stream::kVectorNoise, {draws, 1}), {2, 0});
  return problem;
}

double Measurement::operator[](const std::string& name) const {
  for (const auto& [key, value] : statistics) {
    if (key == name) return value;
  }
  throw std::out_of_range(name);
}

Checkpoint Measurement::save() const {
  Checkpoint checkpoint{{{"statistics", nlohmann::json::array()}}, {{"errors", errors}}};
  std::vector<double> values = {closed_form_error};
  for (const auto& [name, value] : statistics) {
    checkpoint.state["statistics"].push_back(name);
    values.push_back(value);
  }
  checkpoint.tensors["values"] = torch::tensor(values, torch::kDouble);  // JSON has no NaN
  return checkpoint;
}

void Measurement::load(const Checkpoint& checkpoint) {
  const Tensor& values = checkpoint.tensors.at("values");
  closed_form_error = values[0].item<double>();
  errors = checkpoint.tensors.at("errors");
  for (const auto& name : checkpoint.state.at("statistics")) {
    statistics.emplace_back(name, values[static_cast<std::int64_t>(statistics.size()) + 1].item<double>());
  }
}

// In float32 a force that should cancel v + u exactly does so only up to rounding.
double Study::sticking_tolerance() const { return run.dtype == "float32" ? 1e-6 : 1e-12; }

// The p-quantile of sorted numbers; NaN where there are none.
double quantile_of(const Tensor& sorted, double p) {
  if (sorted.numel() == 0) return std::numeric_limits<double>::quiet_NaN();
  return sorted[std::llround(p * static_cast<double>(sorted.numel() - 1))].item<double>();
}

// Blocks at rest without a force, blocks at rest with a force below the friction limit, and normal random v and u.
std::vector<State> default_states(std::int64_t draws, std::int64_t seed) {
  const auto normal = [&](Stream stream) { return at::randn({draws}, generator(seed, stream), torch::kDouble); };
  const Tensor push = 1.7 * at::rand({draws}, generator(seed, Stream::kForces, 1), torch::kDouble) - 0.85;
  const Tensor zero = at::zeros({draws}, torch::kDouble);
  return {{"rest", "at rest without a force", zero, zero},
          {"held", "pushed by up to .85 mu m g", zero, push},
          {"random", "v and u at random", normal(Stream::kSpeeds), normal(Stream::kForces)}};
}

// The rows of a CSV file, repeated equally often, so that there are at least `draws` steps. Throws a UsageError where
// the file cannot be read or lacks a column.
State read_states(const std::string& file, std::int64_t draws, const PhysicsFlags& block) {
  const Table table = read_csv(file, {"v", "u"});
  const auto column = [&](const char* name, double unit) {
    const Tensor x = column_of(table, name) / unit;
    return x.repeat({(draws + x.size(0) - 1) / x.size(0)});
  };
  return {"data", "v and u of " + std::filesystem::path(file).filename().string(),
          column("v", block.dt * block.mu * block.gravity), column("u", block.max_friction())};
}

// Measures one state with one kind and size of noise.
//   number: that of the measurement, on which its random numbers depend.
Measurement measure(const Study& study, std::size_t state, std::size_t noise, double sigma, std::int64_t number) {
  const auto dtype = study.run.scalar_type();
  const Tensor v = study.states[state].v.to(dtype), u = study.states[state].u.to(dtype);
  const Tensor free = v + u, exact = physics::exact_step(v, u, unit_block()).v_next;
  const Problem problem =
      perturbed(physics::traditional_problem(v, u, unit_block()), kNoises[noise], sigma, study.run.seed, number);
  const auto sticks = [&](const Tensor& v_next) { return v_next.abs() < study.sticking_tolerance(); };

  const Tensor lemke = solve(problem, "lemke"), v_next = free + force(lemke);
  const Solutions all = all_solutions(problem.M, problem.q);
  const Tensor solutions = all.found.sum(0);
  const Tensor error = (v_next - exact).abs().to(torch::kDouble) / sigma;
  const Tensor sorted = std::get<0>(error.masked_select(error.isfinite()).sort());
  const Tensor gamma = lemke.select(-1, 2), gamma_is_zero = gamma == 0;
  const Tensor active_set = lcp::nn::TraditionalModelImpl::sticks(lemke.slice(-1, 0, 2), gamma);

  const double unit = sigma * study.unit_velocity();
  Measurement result{state, noise, sigma, {}, torch::empty({kQuantiles + 1}, torch::kDouble), 0};
  for (std::int64_t k = 0; k <= kQuantiles; ++k) {
    result.errors[k] = quantile_of(sorted, static_cast<double>(k) / kQuantiles);
  }
  result.statistics = {
      {"exact", fraction(exact == 0)},
      {"lemke", fraction(sticks(v_next))},
      {"auto", fraction(sticks(free + force(solve(problem, "auto"))))},
      {"any", fraction((sticks(free + force(all.z)) & all.found).any(0))},
      {"several_solutions", fraction(solutions > 1)},
      {"no_solution", fraction(solutions == 0)},
      {"within_1e-3", fraction(v_next.abs() < 1e-3)},
      {"within_1e-2", fraction(v_next.abs() < 1e-2)},
      {"gamma_zero_sticking", fraction(gamma_is_zero.masked_select(exact == 0))},
      {"gamma_zero_sliding", fraction(gamma_is_zero.masked_select(exact != 0))},
      {"active_set_sticking", fraction(active_set.masked_select(exact == 0))},
      {"active_set_sliding", fraction(active_set.masked_select(exact != 0))},
      {"error_median", quantile_of(sorted, 0.5) * unit},
      {"error_95", quantile_of(sorted, 0.95) * unit},
      {"error_median_over_sigma", quantile_of(sorted, 0.5)},
      {"error_95_over_sigma", quantile_of(sorted, 0.95)},
  };
  if (!kNoises[noise].M) {
    const Tensor closed_form = free + biased_friction(problem.q, at::ones({}, dtype)).force;
    const Tensor both_unsolved = v_next.isnan() & closed_form.isnan();
    result.closed_form_error = (v_next - closed_form).masked_fill(both_unsolved, 0).abs().max().item<double>();
  }
  return result;
}

// Changes each entry of M and q by +kChange and -kChange in each of kSingleEntryStates. Row and column of the entry in
// [M q] count from 1; velocities are in m/s.
Table change_single_entries(const Study& study) {
  const auto dtype = study.run.scalar_type();
  const double unit = study.unit_velocity();
  Table all{{"state", "row", "column", "change", "v_next", "gamma", "sticks"}, {}};
  for (std::size_t k = 0; k < kSingleEntryStates.size(); ++k) {
    const Tensor v = at::full({}, kSingleEntryStates[k].first, dtype),
                 u = at::full({}, kSingleEntryStates[k].second, dtype);
    const Problem exact = physics::traditional_problem(v, u, unit_block());
    for (std::int64_t i = 0; i < 24; ++i) {
      const std::int64_t row = i / 8, column = i / 2 % 4;
      const double change = i % 2 == 0 ? kChange : -kChange;
      Tensor M_and_q = at::cat({exact.M, exact.q.unsqueeze(-1)}, -1);
      M_and_q[row][column] += change;
      const Tensor z = solve({M_and_q.slice(-1, 0, 3), M_and_q.select(-1, 3)}, "lemke");
      const double v_next = (v + u + force(z)).item<double>();
      const bool sticks = std::abs(v_next) < study.sticking_tolerance();
      all.add_row({static_cast<double>(k), static_cast<double>(row + 1), static_cast<double>(column + 1), change,
                   v_next * unit, z[2].item<double>() * unit, sticks ? 1. : 0.});
    }
  }
  return all;
}

// Steps of a resting block with an error in q_1 [Notes, 3.2.1], and of a pushed block whose force enters q_1 and q_2
// with the weights a_1 and a_2 [Notes, 3.2.2], each with the result that follows by analysis; v_free is the velocity
// without friction, and all are in m/s.
Table biased_steps(const Study& study) {
  const auto dtype = study.run.scalar_type();
  Table all{{"q_1", "q_2", "v_free", "v_next", "gamma", "v_next_analysis", "gamma_analysis"}, {}};
  const auto add = [&](double q_1, double q_2, double free, double v_next, double gamma) {
    const Tensor zero = at::zeros({}, dtype), q = torch::tensor({q_1, q_2, 1.}, dtype);
    const Tensor z = solve({physics::traditional_problem(zero, zero, unit_block()).M, q}, "lemke");
    const double unit = study.unit_velocity();
    all.add_row({q_1 * unit, q_2 * unit, free * unit, (free + force(z).item<double>()) * unit,
                 z[2].item<double>() * unit, v_next * unit, gamma * unit});
  };
  for (const double error : {1e-3, 1e-2, 1e-1}) {
    add(-error, 0, 0, error / 2, error / 2);
    add(error, 0, 0, 0, 0);
  }
  const std::pair<double, double> weights[] = {{0.9, 1.1}, {1, 1.2}, {1.1, 0.9}, {1, 1},
                                               {0.8, 1},   {1.2, 1}, {1, 0.8},   {0.7, 1.2}};
  for (const auto& [a_1, a_2] : weights) {
    for (const double u : {0.2, -0.2}) {
      const bool slack = (a_2 - a_1) * u >= 0;
      const double weight = slack ? (a_1 + a_2) / 2 : u > 0 ? a_2 : a_1;
      add(a_1 * u, -a_2 * u, u, u * (1 - weight), slack ? (a_2 - a_1) * u / 2 : 0);
    }
  }
  return all;
}

NamedValues joined(NamedValues a, const NamedValues& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

void append(Table& table, const NamedValues& row) {
  for (std::size_t k = 0; k < row.size(); ++k) {
    if (k == table.columns.size()) table.add(row[k].first, {});
    table.columns[k].push_back(row[k].second);
  }
}

std::string percent(double x) { return std::isnan(x) ? "-" : short_number(100 * x) + " %"; }

std::string number(double x) { return std::isnan(x) ? "-" : short_number(x); }

std::string single_state(const Study& study, std::size_t k) {
  return "v = " + number(kSingleEntryStates[k].first * study.unit_velocity()) +
         " m/s, u = " + number(kSingleEntryStates[k].second * study.block.max_friction()) + " N";
}

// The smallest and the largest value of a statistic over all sizes of this noise.
std::string range(const Study& study, std::size_t state, std::size_t noise, const char* name,
                  std::string (*shown)(double)) {
  double least = std::numeric_limits<double>::quiet_NaN(), most = least;
  for (const Measurement& x : study.measurements) {
    if (x.state != state || x.noise != noise) continue;
    least = std::fmin(least, x[name]);
    most = std::fmax(most, x[name]);
  }
  const std::string low = shown(least), high = shown(most);
  return low == high ? low : low + " to " + high;
}

void write_tables(OutputFolder& out, const Study& study) {
  Table measurements, errors;
  for (const Measurement& x : study.measurements) {
    const auto sigma = [&](bool perturbed) { return perturbed ? x.sigma : 0; };
    const Noise& noise = kNoises[x.noise];
    const NamedValues place = {{"state", static_cast<double>(x.state)},
                               {"sigma_M", sigma(noise.M)},
                               {"sigma_q", sigma(noise.q)},
                               {"sigma_mu", sigma(noise.mu)}};
    append(measurements, joined(place, x.statistics));
    for (std::int64_t k = 0; k <= kQuantiles; ++k) {
      const double p = static_cast<double>(k) / kQuantiles;
      append(errors, joined(place, {{"probability", p}, {"error_over_sigma", x.errors[k].item<double>()}}));
    }
  }
  out.write_csv("table.csv", measurements);
  out.write_csv("errors.csv", errors);
  out.write_csv("single_entries.csv", study.single_entries);
  out.write_csv("biases.csv", study.biased_steps);
}

// The content of table.md.
std::string page_of(const Study& study) {
  const PhysicsFlags& block = study.block;
  std::string page = "# Friction with errors in M and q\n\n";
  page += "m = " + number(block.mass) + " kg, dt = " + number(block.dt) + " s, mu = " + number(block.mu) +
          ", g = " + number(block.gravity) + " m/s^2. Noise is normal, of standard deviation sigma on each entry, " +
          "relative to dt mu g = " + number(study.unit_velocity()) +
          " m/s and mu m g = " + number(block.max_friction()) + " N. A step sticks where |v_next| < " +
          number(study.sticking_tolerance()) +
          " dt mu g. Errors of the velocity, in m/s, are relative to the step without noise. Each complementary basis "
          "counts as one solution: several solutions with one velocity differ in how they divide one force into "
          "lambda_plus and lambda_minus.\n";
  for (std::size_t k = 0; k < study.states.size(); ++k) {
    page +=
        "\n## Steps " + study.states[k].description + ", " + std::to_string(study.states[k].v.size(0)) + " a row\n\n";
    page +=
        table_head({"noise in", "sigma", "sticks without noise", "Lemke", "auto", "some solution", "several solutions",
                    "no solution", "within .001 dt mu g", "within .01 dt mu g", "gamma = 0 where it should stick",
                    "where it should slide", "active set of sticking where it should stick", "where it should slide",
                    "error, median", "95 %", "median / sigma", "95 % / sigma"});
    for (const Measurement& x : study.measurements) {
      if (x.state != k) continue;
      std::vector<std::string> fields = {kNoises[x.noise].name, number(x.sigma)};
      for (const auto& [name, value] : x.statistics) {
        fields.push_back(name.starts_with("error") ? number(value) : percent(value));
      }
      page += table_row(fields);
    }
  }
  page += "\n## One entry changed by " + number(kChange) + "\n\n";
  page += table_head({"step", "entry", "change", "v_next, m/s", "gamma, m/s", "sticks"});
  const Table& entries = study.single_entries;
  for (std::size_t k = 0; k < entries.rows(); ++k) {
    const auto of = [&](const char* name) { return entries[name][k]; };
    const std::string entry =
        of("column") < 4 ? "M" + number(of("row")) + number(of("column")) : "q" + number(of("row"));
    page += table_row({single_state(study, static_cast<std::size_t>(of("state"))), entry,
                       (of("change") > 0 ? "+" : "") + number(of("change")), number(of("v_next")), number(of("gamma")),
                       of("sticks") > 0 ? "yes" : "**no**"});
  }
  page += "\n## A bias of q, computed and by analysis, m/s\n\n";
  page += table_head(study.biased_steps.names);
  for (std::size_t k = 0; k < study.biased_steps.rows(); ++k) {
    std::vector<std::string> fields;
    for (const auto& column : study.biased_steps.columns) fields.push_back(number(column[k]));
    page += table_row(fields);
  }
  return page;
}

// The content of metrics.json.
nlohmann::json metrics_of(const Study& study) {
  nlohmann::json fractions = nlohmann::json::array(), entries = nlohmann::json::array();
  double closed_form_error = 0, bias_error = 0;
  for (const Measurement& x : study.measurements) {
    nlohmann::json record = {
        {"state", study.states[x.state].name}, {"noise", kNoises[x.noise].name}, {"sigma", x.sigma}};
    for (const char* name : {"exact", "lemke", "auto", "any"}) record[name] = x[name];
    fractions.push_back(std::move(record));
    closed_form_error = std::max(closed_form_error, x.closed_form_error);
  }
  for (std::size_t k = 0; k < kSingleEntryStates.size(); ++k) {
    std::int64_t sticking = 0;
    for (std::size_t i = 0; i < study.single_entries.rows(); ++i) {
      sticking += study.single_entries["state"][i] == static_cast<double>(k) && study.single_entries["sticks"][i] > 0;
    }
    entries.push_back({{"v", kSingleEntryStates[k].first * study.unit_velocity()},
                       {"u", kSingleEntryStates[k].second * study.block.max_friction()},
                       {"changes", study.single_entries.rows() / kSingleEntryStates.size()},
                       {"sticking", sticking}});
  }
  const Table& biases = study.biased_steps;
  for (std::size_t k = 0; k < biases.rows(); ++k) {
    bias_error = std::max({bias_error, std::abs(biases["v_next"][k] - biases["v_next_analysis"][k]),
                           std::abs(biases["gamma"][k] - biases["gamma_analysis"][k])});
  }
  return {{"sticking_fraction", std::move(fractions)},
          {"single_entries", std::move(entries)},
          {"closed_form_error", closed_form_error * study.unit_velocity()},
          {"bias_error", bias_error},
          {"unit_velocity", study.unit_velocity()}};
}

// Prints a summary.
void summarise(const Study& study, const nlohmann::json& metrics) {
  std::cout << "normal noise on each entry, relative to dt mu g = " << number(study.unit_velocity())
            << " m/s and mu m g = " << number(study.block.max_friction()) << " N\n";
  std::cout << padded("steps that end at rest", 33);
  std::cout << padded("no noise", 10);
  for (const Noise& noise : kNoises) std::cout << padded("in " + std::string(noise.name), 19);
  std::cout << "median error / noise in M and q\n";
  for (std::size_t k = 0; k < study.states.size(); ++k) {
    std::cout << padded("  " + study.states[k].description, 33);
    std::cout << padded(range(study, k, 0, "exact", percent), 10);
    for (std::size_t j = 0; j < std::size(kNoises); ++j) std::cout << padded(range(study, k, j, "lemke", percent), 19);
    std::cout << range(study, k, 2, "error_median_over_sigma", number) << "\n";
  }
  for (std::size_t k = 0; k < kSingleEntryStates.size(); ++k) {
    const auto& single = metrics["single_entries"][k];
    std::cout << "one entry of M or q wrong by " << kChange << ": at rest in " << single["sticking"] << " of "
              << single["changes"] << " steps from " << single_state(study, k) << "\n";
  }
}

int study_noise(int argc, const char* const* argv) {
  CommandLine line("study_noise",
                   "Perturbs M and q of the traditional LCP of a sliding block, and counts the steps that still end at "
                   "rest, those with several solutions or none, and the errors of the velocity.");
  RunFlags run;
  PhysicsFlags block{1, 1, 1, 1};
  std::int64_t samples = 3000;
  std::vector<double> sigmas = {1e-4, 1e-3, 1e-2, 1e-1, 3e-1, 1};
  std::string data;
  bool resumes = false;
  run.add_to(line);
  block.add_to(line);
  line.add("samples", samples, "Perturbed steps for each state, kind of noise and size of noise", at_least_one);
  line.add("sigma", sigmas, "Standard deviations of the noise, in units of dt mu g and mu m g",
           each(positive, "finite numbers > 0"));
  line.add("data", data,
           "CSV file with columns v,u of steps to perturb instead of simulated ones; its rows are repeated "
           "equally often, to at least --samples steps",
           nullptr, Role::kFile);
  add_resume_flag(line, resumes);
  line.footer("Example: study_noise --sigma 0.001 0.01 0.1 --out runs/noise");
  if (const auto status = line.parse(argc, argv)) return *status;
  FolderLock lock(run.out);
  const std::optional<Checkpoint> checkpoint = resume(line, lock, resumes);
  if (block.mu == 0 || block.gravity == 0) {
    throw UsageError("--" + std::string(block.mu == 0 ? "mu" : "gravity") +
                     " must be > 0: noise is relative to the friction that it allows");
  }

  torch::set_num_threads(static_cast<int>(run.threads));
  const torch::NoGradGuard no_grad;
  Study study{run, block,
              data.empty() ? default_states(samples, run.seed) : std::vector{read_states(data, samples, block)}};
  std::vector<Tensor> all_states;
  for (const State& state : study.states) all_states.insert(all_states.end(), {state.v, state.u});
  OutputFolder out(line, run, std::move(lock));
  if (checkpoint) out.continue_earlier_run();
  study.single_entries = change_single_entries(study);
  study.biased_steps = biased_steps(study);
  for (std::size_t state = 0; state < study.states.size(); ++state) {
    for (std::size_t noise = 0; noise < kNoises.size(); ++noise) {
      for (const double sigma : sigmas) study.measurements.push_back({state, noise, sigma, {}, {}, 0});
    }
  }
  Sweep sweep(out, run, checkpoint, fingerprint(all_states));
  const auto count = static_cast<std::int64_t>(study.measurements.size());
  const auto stopped = sweep.run(count, "measurement", [&](std::int64_t k) {
    const torch::NoGradGuard none;
    const Measurement& which = study.measurements[static_cast<std::size_t>(k)];
    return measure(study, which.state, which.noise, which.sigma, k).save();
  });
  if (stopped) return *stopped;
  for (const auto& [k, found] : sweep.results()) study.measurements[static_cast<std::size_t>(k)].load(found);

  const nlohmann::json metrics = metrics_of(study);
  write_tables(out, study);
  out.write("table.md", page_of(study));
  if (!run.quiet) summarise(study, metrics);
  write_results(out, metrics, {"sticking.png", "errors.png", "single_entries.png"});
  return 0;
}

}  // namespace

int main(int argc, char** argv) { run_program("study_noise", study_noise, argc, argv, Processes::kDivided); }
