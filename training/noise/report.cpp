#include "noise/report.h"

#include <algorithm>
#include <cmath>
#include <iostream>
#include <limits>
#include <utility>
#include <vector>

#include "run/files.h"
#include "run/text.h"

namespace lcp::training {
namespace {

using Numbers = std::vector<std::pair<std::string, double>>;

constexpr int kQuantiles = 50;

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

std::string percent(double x) { return std::isnan(x) ? "-" : short_number(100 * x) + " %"; }

std::string number(double x) { return std::isnan(x) ? "-" : short_number(x); }

std::string single_state(const Study& study, std::size_t k) {
  return "v = " + number(kSingleStates[k].first * study.unit_velocity()) +
         " m/s, u = " + number(kSingleStates[k].second * study.block.max_friction()) + " N";
}

// From the least to the most of the cells with this state and noise.
std::string range(const Study& study, std::size_t state, std::size_t noise, const char* name,
                  std::string (*shown)(double)) {
  double least = std::numeric_limits<double>::quiet_NaN(), most = least;
  for (const Cell& cell : study.cells) {
    if (cell.state != state || cell.noise != noise) continue;
    least = std::fmin(least, cell[name]);
    most = std::fmax(most, cell[name]);
  }
  const std::string low = shown(least), high = shown(most);
  return low == high ? low : low + " to " + high;
}

}  // namespace

void write_tables(OutputFolder& out, const Study& study) {
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
  out.write_csv("table.csv", cells);
  out.write_csv("errors.csv", errors);
  out.write_csv("single_entries.csv", entries);
  out.write_csv("biases.csv", biases);
}

std::string page_of(const Study& study) {
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
    page +=
        table_head({"noise in", "sigma", "sticks without noise", "Lemke", "auto", "some solution", "several solutions",
                    "no solution", "within .001 dt mu g", "within .01 dt mu g", "gamma = 0 where it should stick",
                    "where it should slide", "error, median", "95 %", "median / sigma", "95 % / sigma"});
    for (const Cell& cell : study.cells) {
      if (cell.state != k) continue;
      std::vector<std::string> fields = {kNoises[cell.noise].name, number(cell.sigma)};
      for (const auto& [name, x] : cell.numbers) {
        fields.push_back(name.starts_with("error") ? number(x) : percent(x));
      }
      page += table_row(fields);
    }
  }
  page += "\n## One entry changed by " + number(kChange) + "\n\n";
  page += table_head({"step", "entry", "change", "v_next, m/s", "gamma, m/s", "sticks"});
  for (const SingleEntry& x : study.single_entries) {
    const std::string entry =
        x.column < 4 ? "M" + std::to_string(x.row) + std::to_string(x.column) : "q" + std::to_string(x.row);
    page += table_row({single_state(study, x.state), entry, (x.change > 0 ? "+" : "") + number(x.change),
                       number(x.v_next * study.unit_velocity()), number(x.gamma * study.unit_velocity()),
                       x.sticks ? "yes" : "**no**"});
  }
  page += "\n## A bias of q, against its analysis, m/s\n\n" + table_head({std::begin(kBias), std::end(kBias)});
  for (const Bias& bias : study.biases) {
    std::vector<std::string> fields;
    for (const double x : bias) fields.push_back(number(x));
    page += table_row(fields);
  }
  return page;
}

nlohmann::json metrics_of(const Study& study) {
  nlohmann::json fractions = nlohmann::json::array(), entries = nlohmann::json::array();
  double closed_form_error = 0, bias_error = 0;
  for (const Cell& cell : study.cells) {
    nlohmann::json record = {
        {"state", study.states[cell.state].name}, {"noise", kNoises[cell.noise].name}, {"sigma", cell.sigma}};
    for (const char* name : {"exact", "lemke", "auto", "any"}) record[name] = cell[name];
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

void summarise(const Study& study, const nlohmann::json& metrics) {
  std::cout << "normal noise on each entry, relative to dt mu g = " << number(study.unit_velocity())
            << " m/s and mu m g = " << number(study.block.max_friction()) << " N\n";
  std::cout << padded("steps that end at rest", 33);
  std::cout << padded("no noise", 10);
  for (const Noise& noise : kNoises) std::cout << padded("in " + std::string(noise.name), 19);
  std::cout << "median error / noise in M and q\n";
  for (std::size_t k = 0; k < study.states.size(); ++k) {
    std::cout << padded("  " + study.states[k].meaning, 33);
    std::cout << padded(range(study, k, 0, "exact", percent), 10);
    for (std::size_t j = 0; j < std::size(kNoises); ++j) std::cout << padded(range(study, k, j, "lemke", percent), 19);
    std::cout << range(study, k, 2, "error_median_over_sigma", number) << "\n";
  }
  for (std::size_t k = 0; k < kSingleStates.size(); ++k) {
    const auto& single = metrics["single_entries"][k];
    std::cout << "one entry of M or q wrong by " << kChange << ": at rest in " << single["sticking"] << " of "
              << single["changes"] << " steps from " << single_state(study, k) << "\n";
  }
}

}  // namespace lcp::training
