#include <algorithm>
#include <array>
#include <cmath>
#include <iostream>
#include <limits>
#include <numeric>
#include <string_view>
#include <utility>

#include "comparison/comparison.h"
#include "run/text.h"

namespace lcp::training {
namespace {

using nlohmann::json;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

constexpr const char* kMetrics[] = {
    "heldout_rmse", "sticking_exact_zero_fraction", "sticking_close_fraction", "rollout_rmse", "parameter_error", "mu",
    "parameters",   "identifiable_parameters",      "heldout_unsolved",        "time"};

// Median and range over the seeds. A metric that is no number, as the error where a step has no solution, counts as
// infinite.
json summary(const json& runs, const char* name) {
  std::vector<double> values;
  for (const json& run : runs) {
    if (run.contains("error")) continue;
    const double value = run[name].is_number() ? run[name].get<double>() : kInfinity;
    values.push_back(std::isfinite(value) ? value : kInfinity);
  }
  if (values.empty()) return nullptr;
  std::sort(values.begin(), values.end());
  const double median = std::midpoint(values[(values.size() - 1) / 2], values[values.size() / 2]);
  return {{"median", median}, {"least", values.front()}, {"most", values.back()}};
}

std::int64_t failures(const json& row) {
  return std::count_if(row["runs"].begin(), row["runs"].end(), [](const json& run) { return run.contains("error"); });
}

std::string number(const json& x) {
  return x.is_number() && std::isfinite(x.get<double>()) ? short_number(x.get<double>()) : "none";
}

// A value of this metric: a share is shown in percent.
std::string value_of(std::string_view name, const json& x) {
  return name.ends_with("_fraction") && x.is_number() && std::isfinite(x.get<double>()) ? percentage(x) : number(x);
}

std::string median(const json& row, const char* name) {
  return value_of(name, row[name].is_null() ? json() : row[name]["median"]);
}

std::string range(const json& row, const char* name) {
  const json& x = row[name];
  if (x.is_null()) return "none";
  const std::string least = value_of(name, x["least"]), most = value_of(name, x["most"]);
  return least == most ? least : value_of(name, x["median"]) + " (" + least + " to " + most + ")";
}

// The held-out error, or why there is none.
std::string outcome(const json& row) {
  if (row.contains("not_built")) return "not built";
  const auto failed = failures(row);
  std::string note =
      failed == 0 ? "" : std::to_string(failed) + " of " + std::to_string(row["runs"].size()) + " failed";
  if (row["heldout_rmse"].is_null()) return note;
  return range(row, "heldout_rmse") + (note.empty() ? "" : "; " + note);
}

}  // namespace

json& Results::row_of(const ComparisonRun& run) {
  for (json& row : rows_) {
    if (row["method"] == run.method.name && row["start"] == run.start) return row;
  }
  rows_.push_back({{"method", run.method.name},
                   {"start", run.start},
                   {"learns_from", run.method.learns_from},
                   {"runs", json::array()}});
  return rows_.back();
}

void Results::add(const ComparisonRun& run, const json& metrics) {
  json& row = row_of(run);
  if (metrics.contains("not_built")) {
    row["not_built"] = metrics["not_built"];
    return;
  }
  json record = {{"seed", run.seed}};
  if (metrics.contains("error")) {
    record["error"] = metrics["error"];
  } else {
    for (const char* name : kMetrics) record[name] = metrics.contains(name) ? metrics[name] : json();
  }
  row["runs"].push_back(std::move(record));
}

void Results::summarise() {
  for (json& row : rows_) {
    for (const char* name : kMetrics) row[name] = summary(row["runs"], name);
  }
}

std::vector<json> Results::repeatable() const {
  std::vector<json> rows = rows_;
  for (json& row : rows) {
    row.erase("time");
    for (json& run : row["runs"]) run.erase("time");
  }
  return rows;
}

std::string Results::page(const ComparisonFlags& flags) const {
  const PhysicsFlags& block = flags.block;
  std::string text = "# Learning methods on one sliding block\n\n";
  text += "m = " + number(block.mass) + " kg, dt = " + number(block.dt) + " s, mu = " + number(block.mu) +
          ", g = " + number(block.gravity) + " m/s^2. " + std::to_string(flags.seeds) + " seeds from " +
          std::to_string(flags.run.seed) + "; ";
  text += flags.samples.data.empty()
              ? "each simulates " + std::to_string(flags.samples.samples) + " steps (" + flags.samples.states +
                    ") to learn from, with noise of " + number(flags.samples.velocity_noise) + " m/s on v_next, and " +
                    std::to_string(flags.samples.samples / (kHeldOutOneIn - 1)) + " to hold out, without noise. "
              : "each with the rows of " + flags.samples.data + ", of which one in five is held out. ";
  text += "Near starts have mu = " + number(flags.start_mu("near")) + ", far ones " + number(flags.start_mu("far")) +
          "; random ones know nothing of friction. Numbers are medians over the seeds (least to most).\n\n";
  text += table_head({"method", "learns from", "start", "held-out rmse, m/s", "rollout rmse, m/s", "exactly 0 at rest",
                      "within .001 dt mu g", "parameter error", "mu", "identifiable", "unsolved", "time, s"});
  for (const json& row : rows_) {
    std::vector<std::string> fields = {row["method"], row["learns_from"], row["start"], outcome(row)};
    for (const char* name :
         {"rollout_rmse", "sticking_exact_zero_fraction", "sticking_close_fraction", "parameter_error", "mu"}) {
      fields.push_back(range(row, name));
    }
    const std::string parameters = range(row, "parameters");
    fields.push_back(parameters == "none" ? "none" : range(row, "identifiable_parameters") + " of " + parameters);
    for (const char* name : {"heldout_unsolved", "time"}) fields.push_back(range(row, name));
    text += table_row(fields);
  }
  text +=
      "\n"
      "* The black box is the best of an affine map and 36 plain networks by one in five of the samples.\n"
      "* Motion is v, u and v_next. Physical forces are >= 0; of the fictitious ones of the direct formulation one is\n"
      "  negative. Contact forces are those of the traditional formulation, and gamma.\n"
      "* The rmse is none where a step has no solution; shares are of the held-out steps that end at rest.\n"
      "* A rollout is 50 steps under random forces, which lead beyond the velocities that were learned from.\n"
      "* The parameter error is the largest: for direct, direct_physical and slack that of f [m/s] and G [s/kg] over\n"
      "  the held-out steps; else that of an entry of [M|W], with forces and velocities in units of mu m g and\n"
      "  dt mu g, or of m g and dt g where friction was learned, and rows scaled to fit best. The part of W without\n"
      "  effect on motion is left out; other entries that the data do not determine count as errors.\n"
      "* Identifiable: the number of parameters that the data determine at the solution.\n"
      "* The time is that of the whole program: start, training and evaluation, without figures.\n";
  const bool failed = std::any_of(rows_.begin(), rows_.end(), [](const json& row) { return failures(row) > 0; });
  if (failed) {
    text += "\n## Failed\n\n" + table_head({"method", "start", "seed", "error"});
    for (const json& row : rows_) {
      for (const json& run : row["runs"]) {
        if (run.contains("error")) text += table_row({row["method"], row["start"], run["seed"].dump(), run["error"]});
      }
    }
  }
  text += "\n## Each run\n\n" + table_head({"method", "start", "seed", "held-out rmse, m/s", "exactly 0 at rest",
                                            "within .001 dt mu g", "rollout rmse, m/s", "parameter error", "time, s"});
  for (const json& row : rows_) {
    for (const json& run : row["runs"]) {
      if (run.contains("error")) continue;
      std::vector<std::string> fields = {row["method"], row["start"], run["seed"].dump()};
      for (const char* name : {"heldout_rmse", "sticking_exact_zero_fraction", "sticking_close_fraction",
                               "rollout_rmse", "parameter_error", "time"}) {
        fields.push_back(value_of(name, run[name]));
      }
      text += table_row(fields);
    }
  }
  return text;
}

void Results::print() const {
  const auto print_row = [&](const std::array<std::string, 6>& fields) {
    constexpr std::size_t kWidths[] = {24, 8, 33, 13, 21};
    for (std::size_t k = 0; k < std::size(kWidths); ++k) std::cout << padded(fields[k], kWidths[k]);
    std::cout << fields.back() << "\n";
  };
  print_row({"method", "start", "held-out rmse, m/s", "exactly 0", "within .001 dt mu g", "time, s"});
  for (const json& row : rows_) {
    print_row({row["method"], row["start"], outcome(row), median(row, "sticking_exact_zero_fraction"),
               median(row, "sticking_close_fraction"), median(row, "time")});
  }
  std::cout << "Shares are of the held-out steps that end at rest.\n";
}

bool Results::report_failures(const std::string& program, bool quiet) const {
  bool failed = false;
  for (const json& row : rows_) {
    const std::string method = row["method"];
    if (row.contains("not_built") && !quiet) {
      std::cerr << method << " is not built, since " << row["not_built"].get<std::string>() << " is not installed\n";
    }
    for (const json& run : row["runs"]) {
      if (!run.contains("error")) continue;
      failed = true;
      std::cerr << program << ": " << method << ", " << row["start"].get<std::string>() << " start, seed "
                << run["seed"] << ": " << run["error"].get<std::string>() << "\n";
    }
  }
  return failed;
}

}  // namespace lcp::training
