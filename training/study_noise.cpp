// Counts how often a block that friction holds remains at rest if M and q of its LCP are perturbed [Notes, 3.2].
#include <torch/types.h>
#include <torch/utils.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <iostream>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "noise/study.h"
#include "run/program.h"

namespace {

using namespace lcp::training;

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

NamedValues columns_of(const BiasedStep& step) {
  return {{"q_1", step.q_1},
          {"q_2", step.q_2},
          {"v_free", step.v_free},
          {"v_next", step.v_next},
          {"gamma", step.gamma},
          {"v_next_analysis", step.v_next_analysis},
          {"gamma_analysis", step.gamma_analysis}};
}

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
  Table measurements, errors, entries, biases;
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
  const double unit = study.unit_velocity();
  for (const SingleEntryChange& x : study.single_entries) {
    append(entries, {{"state", static_cast<double>(x.state)},
                     {"row", static_cast<double>(x.row)},
                     {"column", static_cast<double>(x.column)},
                     {"change", x.change},
                     {"v_next", x.v_next * unit},
                     {"gamma", x.gamma * unit},
                     {"sticks", x.sticks}});
  }
  for (const BiasedStep& step : study.biased_steps) append(biases, columns_of(step));
  out.write_csv("table.csv", measurements);
  out.write_csv("errors.csv", errors);
  out.write_csv("single_entries.csv", entries);
  out.write_csv("biases.csv", biases);
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
  for (const SingleEntryChange& x : study.single_entries) {
    const std::string entry =
        x.column < 4 ? "M" + std::to_string(x.row) + std::to_string(x.column) : "q" + std::to_string(x.row);
    page += table_row({single_state(study, x.state), entry, (x.change > 0 ? "+" : "") + number(x.change),
                       number(x.v_next * study.unit_velocity()), number(x.gamma * study.unit_velocity()),
                       x.sticks ? "yes" : "**no**"});
  }
  page += "\n## A bias of q, computed and by analysis, m/s\n\n";
  std::vector<std::string> titles;
  for (const auto& column : columns_of({})) titles.push_back(column.first);
  page += table_head(titles);
  for (const BiasedStep& step : study.biased_steps) {
    std::vector<std::string> fields;
    for (const auto& column : columns_of(step)) fields.push_back(number(column.second));
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
    const auto sticking = std::count_if(study.single_entries.begin(), study.single_entries.end(),
                                        [&](const SingleEntryChange& x) { return x.state == k && x.sticks; });
    entries.push_back({{"v", kSingleEntryStates[k].first * study.unit_velocity()},
                       {"u", kSingleEntryStates[k].second * study.block.max_friction()},
                       {"changes", study.single_entries.size() / kSingleEntryStates.size()},
                       {"sticking", sticking}});
  }
  for (const BiasedStep& x : study.biased_steps) {
    bias_error = std::max({bias_error, std::abs(x.v_next - x.v_next_analysis), std::abs(x.gamma - x.gamma_analysis)});
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
  if (!data.empty()) data = std::filesystem::weakly_canonical(data).string();

  torch::set_num_threads(static_cast<int>(run.threads));
  const torch::NoGradGuard no_grad;
  Study study{run, block,
              data.empty() ? default_states(samples, run.seed) : std::vector{read_states(data, samples, block)}};
  std::vector<torch::Tensor> all_states;
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

int main(int argc, char** argv) {
  lcp::training::run_program("study_noise", study_noise, argc, argv, Processes::kDivided);
}
