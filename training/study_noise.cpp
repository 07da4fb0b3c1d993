// How often a block that friction holds still rests where M and q of its LCP are perturbed.
#include <ATen/ATen.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "common/command_line.h"
#include "common/error.h"
#include "common/evaluation.h"
#include "common/files.h"
#include "common/physics_flags.h"
#include "common/progress.h"
#include "common/random.h"
#include "lcp/learning/noise_study.h"
#include "lcp/physics/sliding_block.h"

namespace {

using namespace lcp::training;
using lcp::physics::Problem;
using torch::Tensor;

constexpr double kNoNumber = std::numeric_limits<double>::quiet_NaN();
constexpr int kQuantiles = 50;

// The study is in units in which dt = m = mu g = 1: velocities in dt mu g, forces in mu m g. Noise of one size on every
// entry is relative to these, and so the same for every block.
struct State {
  std::string name, meaning;
  Tensor v, u;  // [draws]
};

struct Noise {
  const char* name;
  bool M, q, mu;
};
constexpr Noise kNoises[] = {
    {"q", false, true, false}, {"M", true, false, false}, {"M and q", true, true, false}, {"mu", false, false, true}};

using Numbers = std::vector<std::pair<std::string, double>>;

struct Cell {
  std::size_t state, noise;
  double sigma;
  Numbers numbers;
  Tensor errors;             // |v_next - exact| / sigma of the steps that have a solution, sorted
  double closed_form_error;  // of biased_friction, where M is not perturbed
};

struct SingleEntry {
  std::size_t state;
  std::int64_t row, column;  // of [M q], from 1
  double change, v_next, gamma;
  bool sticks;
};
constexpr double kChange = 0.1;
constexpr std::array<std::pair<double, double>, 3> kSingleStates = {{{0, 0}, {0, 0.3}, {0.2, -0.5}}};  // v, u

// m/s
using Bias = std::array<double, 7>;
constexpr const char* kBias[] = {"q_1", "q_2", "v_free", "v_next", "gamma", "v_next_analysis", "gamma_analysis"};

struct Study {
  const RunFlags& run;
  const PhysicsFlags& block;
  std::vector<State> states;
  std::vector<Cell> cells;
  std::vector<SingleEntry> single_entries;
  std::vector<Bias> biases;

  double unit_velocity() const { return block.dt * block.mu * block.gravity; }
  // In float32 a force that should cancel v + u does so to rounding.
  double sticking_tolerance() const { return run.dtype == "float32" ? 1e-6 : 1e-12; }
};

const lcp::physics::SlidingBlock& unit_block() {
  static const auto block = lcp::physics::SlidingBlock::of(1, 1, 1, 1);
  return block;
}

Tensor force(const Tensor& z) { return z.select(-1, 0) - z.select(-1, 1); }

Tensor solve(const Problem& problem, const char* method) {
  lcp::SolveOptions options;
  options.method = method;
  return lcp::solve(problem.M, problem.q, options).z;
}

double share(const Tensor& mask) { return mask.to(torch::kDouble).mean().item<double>(); }

double quantile_of(const Tensor& sorted, double p) {
  if (sorted.numel() == 0) return kNoNumber;
  return sorted[std::llround(p * static_cast<double>(sorted.numel() - 1))].item<double>();
}

std::vector<State> default_states(std::int64_t draws, std::int64_t seed) {
  const auto normal = [&](Stream stream) { return at::randn({draws}, generator(seed, stream), torch::kDouble); };
  const Tensor push = 1.7 * at::rand({draws}, generator(seed, Stream::kForces, 1), torch::kDouble) - 0.85;
  const Tensor zero = at::zeros({draws}, torch::kDouble);
  return {{"rest", "at rest without a force", zero, zero},
          {"held", "held against up to .85 mu m g", zero, push},
          {"random", "v and u at random", normal(Stream::kSpeeds), normal(Stream::kForces)}};
}

// Each row as often, and at least `draws` in all.
State read_states(const std::string& file, std::int64_t draws, const PhysicsFlags& block) {
  const Table table = read_csv(file, {"v", "u"});
  const auto column = [&](const char* name, double unit) {
    const Tensor x = torch::tensor(table[name], torch::kDouble) / unit;
    return x.repeat({(draws + x.size(0) - 1) / x.size(0)});
  };
  return {"data", "v and u of " + std::filesystem::path(file).filename().string(),
          column("v", block.dt * block.mu * block.gravity), column("u", block.max_friction())};
}

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

// The next cell, with random numbers of its own.
Cell measure(const Study& study, std::size_t state, std::size_t noise, double sigma) {
  const auto dtype = study.run.scalar_type();
  const Tensor v = study.states[state].v.to(dtype), u = study.states[state].u.to(dtype);
  const Tensor free = v + u, exact = lcp::physics::exact_step(v, u, unit_block()).v_next;
  const Problem problem = perturbed(lcp::physics::traditional_problem(v, u, unit_block()), kNoises[noise], sigma,
                                    study.run.seed, static_cast<std::int64_t>(study.cells.size()));
  const auto sticks = [&](const Tensor& v_next) { return v_next.abs() < study.sticking_tolerance(); };

  const Tensor lemke = solve(problem, "lemke"), v_next = free + force(lemke);
  const lcp::learning::Solutions all = lcp::learning::all_solutions(problem.M, problem.q);
  const Tensor solutions = all.found.sum(0);
  const Tensor error = (v_next - exact).abs().to(torch::kDouble) / sigma;
  const Tensor sorted = std::get<0>(error.masked_select(error.isfinite()).sort());
  const Tensor gamma_is_zero = lemke.select(-1, 2) == 0;

  const double unit = sigma * study.unit_velocity();
  Cell cell{state, noise, sigma, {}, sorted, 0};
  cell.numbers = {
      {"exact", share(exact == 0)},
      {"lemke", share(sticks(v_next))},
      {"auto", share(sticks(free + force(solve(problem, "auto"))))},
      {"any", share((sticks(free + force(all.z)) & all.found).any(0))},
      {"several_solutions", share(solutions > 1)},
      {"no_solution", share(solutions == 0)},
      {"within_1e-3", share(v_next.abs() < 1e-3)},
      {"within_1e-2", share(v_next.abs() < 1e-2)},
      {"gamma_zero_sticking", share(gamma_is_zero.masked_select(exact == 0))},
      {"gamma_zero_sliding", share(gamma_is_zero.masked_select(exact != 0))},
      {"error_median", quantile_of(sorted, 0.5) * unit},
      {"error_95", quantile_of(sorted, 0.95) * unit},
      {"error_median_over_sigma", quantile_of(sorted, 0.5)},
      {"error_95_over_sigma", quantile_of(sorted, 0.95)},
  };
  if (!kNoises[noise].M) {
    const Tensor closed = free + lcp::learning::biased_friction(problem.q, at::ones({}, dtype)).force;
    const Tensor both_unsolved = v_next.isnan() & closed.isnan();
    cell.closed_form_error = (v_next - closed).masked_fill(both_unsolved, 0).abs().max().item<double>();
  }
  return cell;
}

std::vector<SingleEntry> change_single_entries(const Study& study) {
  const auto dtype = study.run.scalar_type();
  std::vector<SingleEntry> all;
  for (std::size_t k = 0; k < kSingleStates.size(); ++k) {
    const Tensor v = at::full({}, kSingleStates[k].first, dtype), u = at::full({}, kSingleStates[k].second, dtype);
    const Problem right = lcp::physics::traditional_problem(v, u, unit_block());
    for (std::int64_t i = 0; i < 24; ++i) {
      const std::int64_t row = i / 8, column = i / 2 % 4;
      const double change = i % 2 == 0 ? kChange : -kChange;
      Tensor both = at::cat({right.M, right.q.unsqueeze(-1)}, -1);
      both[row][column] += change;
      const Tensor z = solve({both.slice(-1, 0, 3), both.select(-1, 3)}, "lemke");
      const double v_next = (v + u + force(z)).item<double>();
      all.push_back(
          {k, row + 1, column + 1, change, v_next, z[2].item<double>(), std::abs(v_next) < study.sticking_tolerance()});
    }
  }
  return all;
}

// A resting block with an error in q_1 [Notes, 3.2.1], and one that is pushed, with weights a_1, a_2 on its force
// [Notes, 3.2.2]; and what follows by analysis.
std::vector<Bias> analysed_biases(const Study& study) {
  const auto dtype = study.run.scalar_type();
  std::vector<Bias> all;
  const auto add = [&](double q_1, double q_2, double free, double v_next, double gamma) {
    const Tensor zero = at::zeros({}, dtype), q = torch::tensor({q_1, q_2, 1.}, dtype);
    const Tensor z = solve({lcp::physics::traditional_problem(zero, zero, unit_block()).M, q}, "lemke");
    all.push_back({q_1, q_2, free, free + force(z).item<double>(), z[2].item<double>(), v_next, gamma});
    for (double& x : all.back()) x *= study.unit_velocity();
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

Numbers joined(Numbers a, const Numbers& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

void append(Table& table, const Numbers& row) {
  for (std::size_t k = 0; k < row.size(); ++k) {
    if (k == table.columns.size()) table.add(row[k].first, {});
    table.columns[k].push_back(row[k].second);
  }
}

void write_tables(const Study& study) {
  Table cells, errors, entries, biases;
  for (const Cell& cell : study.cells) {
    const auto sigma = [&](bool perturbed) { return perturbed ? cell.sigma : 0; };
    const Noise& noise = kNoises[cell.noise];
    const Numbers place = {{"state", static_cast<double>(cell.state)},
                           {"sigma_M", sigma(noise.M)},
                           {"sigma_q", sigma(noise.q)},
                           {"sigma_mu", sigma(noise.mu)}};
    append(cells, joined(place, cell.numbers));
    for (int k = 0; k <= kQuantiles; ++k) {
      const double p = static_cast<double>(k) / kQuantiles;
      append(errors, joined(place, {{"probability", p}, {"error_over_sigma", quantile_of(cell.errors, p)}}));
    }
  }
  const double unit = study.unit_velocity();
  for (const SingleEntry& x : study.single_entries) {
    append(entries, {{"state", static_cast<double>(x.state)},
                     {"row", static_cast<double>(x.row)},
                     {"column", static_cast<double>(x.column)},
                     {"change", x.change},
                     {"v_next", x.v_next * unit},
                     {"gamma", x.gamma * unit},
                     {"sticks", x.sticks}});
  }
  for (const Bias& bias : study.biases) {
    Numbers row;
    for (std::size_t k = 0; k < bias.size(); ++k) row.emplace_back(kBias[k], bias[k]);
    append(biases, row);
  }
  const std::filesystem::path& out = study.run.out;
  write_csv(out / "table.csv", cells);
  write_csv(out / "errors.csv", errors);
  write_csv(out / "single_entries.csv", entries);
  write_csv(out / "biases.csv", biases);
}

std::string text(const char* format, double x) {
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, format, x);
  return buffer;
}

std::string percent(double x) { return std::isnan(x) ? "-" : text("%.3g %%", 100 * x); }

std::string number(double x) { return std::isnan(x) ? "-" : text("%.3g", x + 0.); }  // no -0

std::string row(const std::vector<std::string>& fields) {
  std::string line = "|";
  for (const std::string& field : fields) line += " " + field + " |";
  return line + "\n";
}

std::string header(const std::vector<std::string>& fields) {
  return row(fields) + row(std::vector<std::string>(fields.size(), "---"));
}

std::string single_state(const Study& study, std::size_t k) {
  return "v = " + number(kSingleStates[k].first * study.unit_velocity()) +
         " m/s, u = " + number(kSingleStates[k].second * study.block.max_friction()) + " N";
}

std::string report(const Study& study) {
  const PhysicsFlags& block = study.block;
  std::string page = "# Friction with errors in M and q\n\n";
  page +=
      "m = " + number(block.mass) + " kg, dt = " + number(block.dt) + " s, mu = " + number(block.mu) +
      ", g = " + number(block.gravity) + " m/s^2. Noise is normal, of standard deviation sigma on each entry, " +
      "relative to dt mu g = " + number(study.unit_velocity()) + " m/s and mu m g = " + number(block.max_friction()) +
      " N. A step sticks where |v_next| < " + number(study.sticking_tolerance()) +
      " dt mu g. Errors of the velocity, in m/s, are against the step without noise. Solutions are counted at bases: "
      "where the velocity is unique, several of them are splits of one force.\n";
  for (std::size_t k = 0; k < study.states.size(); ++k) {
    page += "\n## Steps " + study.states[k].meaning + ", " + std::to_string(study.states[k].v.size(0)) + " a row\n\n";
    page += header({"noise in", "sigma", "sticks without noise", "Lemke", "auto", "some solution", "several solutions",
                    "no solution", "within .001 dt mu g", "within .01 dt mu g", "gamma = 0 where it should stick",
                    "where it should slide", "error, median", "95 %", "median / sigma", "95 % / sigma"});
    for (const Cell& cell : study.cells) {
      if (cell.state != k) continue;
      std::vector<std::string> fields = {kNoises[cell.noise].name, number(cell.sigma)};
      for (const auto& [name, x] : cell.numbers) {
        fields.push_back(name.starts_with("error") ? number(x) : percent(x));
      }
      page += row(fields);
    }
  }
  page += "\n## One entry changed by " + number(kChange) + "\n\n";
  page += header({"step", "entry", "change", "v_next, m/s", "gamma, m/s", "sticks"});
  for (const SingleEntry& x : study.single_entries) {
    const std::string entry =
        x.column < 4 ? "M" + std::to_string(x.row) + std::to_string(x.column) : "q" + std::to_string(x.row);
    page += row({single_state(study, x.state), entry, text("%+.3g", x.change), number(x.v_next * study.unit_velocity()),
                 number(x.gamma * study.unit_velocity()), x.sticks ? "yes" : "**no**"});
  }
  page += "\n## A bias of q, against its analysis, m/s\n\n" + header({std::begin(kBias), std::end(kBias)});
  for (const Bias& bias : study.biases) {
    std::vector<std::string> fields;
    for (const double x : bias) fields.push_back(number(x));
    page += row(fields);
  }
  return page;
}

double value(const Cell& cell, const std::string& name) {
  return std::find_if(cell.numbers.begin(), cell.numbers.end(), [&](const auto& x) { return x.first == name; })->second;
}

nlohmann::json metrics_of(const Study& study) {
  nlohmann::json fractions = nlohmann::json::array(), entries = nlohmann::json::array();
  double closed_form_error = 0, bias_error = 0;
  for (const Cell& cell : study.cells) {
    nlohmann::json record = {
        {"state", study.states[cell.state].name}, {"noise", kNoises[cell.noise].name}, {"sigma", cell.sigma}};
    for (const char* name : {"exact", "lemke", "auto", "any"}) record[name] = value(cell, name);
    fractions.push_back(std::move(record));
    closed_form_error = std::max(closed_form_error, cell.closed_form_error);
  }
  for (std::size_t k = 0; k < kSingleStates.size(); ++k) {
    const auto sticking = std::count_if(study.single_entries.begin(), study.single_entries.end(),
                                        [&](const SingleEntry& x) { return x.state == k && x.sticks; });
    entries.push_back({{"v", kSingleStates[k].first * study.unit_velocity()},
                       {"u", kSingleStates[k].second * study.block.max_friction()},
                       {"changes", study.single_entries.size() / kSingleStates.size()},
                       {"sticking", sticking}});
  }
  for (const Bias& x : study.biases) {
    bias_error = std::max({bias_error, std::abs(x[3] - x[5]), std::abs(x[4] - x[6])});
  }
  return {{"sticking_fraction", std::move(fractions)},
          {"single_entries", std::move(entries)},
          {"closed_form_error", closed_form_error * study.unit_velocity()},
          {"bias_error", bias_error},
          {"unit_velocity", study.unit_velocity()}};
}

// From the least to the most of the cells with this state and noise.
std::string range(const Study& study, std::size_t state, std::size_t noise, const char* name,
                  std::string (*shown)(double)) {
  double least = kNoNumber, most = kNoNumber;
  for (const Cell& cell : study.cells) {
    if (cell.state != state || cell.noise != noise) continue;
    least = std::fmin(least, value(cell, name));
    most = std::fmax(most, value(cell, name));
  }
  const std::string low = shown(least), high = shown(most);
  return low == high ? low : low + " to " + high;
}

void summarise(const Study& study, const nlohmann::json& metrics) {
  const auto cell = [](std::string text, std::size_t width) {
    text.resize(std::max(width, text.size() + 1), ' ');
    std::cout << text;
  };
  std::cout << "normal noise on each entry, relative to dt mu g = " << number(study.unit_velocity())
            << " m/s and mu m g = " << number(study.block.max_friction()) << " N\n";
  cell("steps that end at rest", 33);
  cell("no noise", 10);
  for (const Noise& noise : kNoises) cell("in " + std::string(noise.name), 19);
  std::cout << "median error / noise in M and q\n";
  for (std::size_t k = 0; k < study.states.size(); ++k) {
    cell("  " + study.states[k].meaning, 33);
    cell(range(study, k, 0, "exact", percent), 10);
    for (std::size_t j = 0; j < std::size(kNoises); ++j) cell(range(study, k, j, "lemke", percent), 19);
    std::cout << range(study, k, 2, "error_median_over_sigma", number) << "\n";
  }
  for (std::size_t k = 0; k < kSingleStates.size(); ++k) {
    const auto& single = metrics["single_entries"][k];
    std::cout << "one entry of M or q wrong by " << kChange << ": at rest in " << single["sticking"] << " of "
              << single["changes"] << " steps from " << single_state(study, k) << "\n";
  }
  std::cout << (study.run.out / "table.md").string() << "\n";
}

int study_noise(int argc, const char* const* argv) {
  CommandLine line("study_noise",
                   "Perturbs M and q of the traditional LCP of a sliding block, and counts the steps that still end at "
                   "rest: exact sticking, the velocity that errors leave, several solutions and none.");
  RunFlags run;
  PhysicsFlags block{1, 1, 1, 1};
  std::int64_t samples = 3000;
  std::vector<double> sigmas = {1e-4, 1e-3, 1e-2, 1e-1, 3e-1, 1};
  std::string data;
  run.add_to(line);
  block.add_to(line);
  line.add<std::int64_t>("samples", samples, "Perturbed steps of each state, kind and size of noise", at_least_one);
  line.add<std::vector<double>>("sigma", sigmas, "Standard deviations of the noise, in units of dt mu g and mu m g",
                                [](const std::vector<double>& x) {
                                  const bool valid = !x.empty() && std::all_of(x.begin(), x.end(), [](double sigma) {
                                    return positive(sigma).empty();
                                  });
                                  return valid ? "" : "finite numbers > 0";
                                });
  line.add<std::string>("data", data,
                        "CSV file with columns v,u: steps to perturb, each as often and --samples or more in all, "
                        "instead of steps from rest and at random",
                        nullptr, Role::kFile);
  line.footer("Example: study_noise --sigma 0.001 0.01 0.1 --out runs/noise");
  if (const auto status = line.parse(argc, argv)) return *status;
  if (block.mu == 0 || block.gravity == 0) {
    throw UsageError("--" + std::string(block.mu == 0 ? "mu" : "gravity") +
                     " must be > 0: noise is relative to the friction that it allows");
  }
  if (!data.empty()) data = std::filesystem::weakly_canonical(data).string();

  torch::set_num_threads(static_cast<int>(run.threads));
  const torch::NoGradGuard no_grad;
  Study study{run, block, {}, {}, {}, {}};
  study.states = data.empty() ? default_states(samples, run.seed) : std::vector{read_states(data, samples, block)};
  study.single_entries = change_single_entries(study);
  study.biases = analysed_biases(study);
  Progress progress(0, static_cast<std::int64_t>(study.states.size() * std::size(kNoises) * sigmas.size()), run.quiet);
  for (std::size_t state = 0; state < study.states.size(); ++state) {
    for (std::size_t noise = 0; noise < std::size(kNoises); ++noise) {
      for (const double sigma : sigmas) {
        study.cells.push_back(measure(study, state, noise, sigma));
        progress.show(static_cast<std::int64_t>(study.cells.size()),
                      study.states[state].meaning + ", noise in " + kNoises[noise].name + " of " + number(sigma));
      }
    }
  }

  const nlohmann::json metrics = metrics_of(study);
  write_json(run.out / "config.json", line.config());
  write_tables(study);
  write_file(run.out / "table.md", report(study));
  if (!run.quiet) summarise(study, metrics);
  conclude(line, run, metrics);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return lcp::training::guarded("study_noise", [&] { return study_noise(argc, argv); });
}
