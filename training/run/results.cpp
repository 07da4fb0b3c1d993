#include "run/results.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iostream>
#include <string_view>

#include "run/python.h"
#include "run/text.h"

namespace lcp::training {
namespace {

constexpr const char* kUnsolved = "none: some steps have no solution";
constexpr const char* kNoRest = "none: no step ends at rest exactly";
constexpr std::size_t kDirectionsShown = 5, kDirectionWidth = 120;

// The metrics of the summary, in this order. Those that a program does not have, or has as null, are left out.
struct SummaryLine {
  const char* key;
  const char* label;
  const char* unit;
  const char* otherwise = "none";  // shown where the metric is NaN
  bool is_share = false;           // of what `unit` says; shown in percent
};
constexpr SummaryLine kSummary[] = {
    {"mu", "friction coefficient", ""},
    {"stiffness", "stiffness", " N/m"},
    {"heldout_rmse", "held-out rmse", " m/s", kUnsolved},
    {"black_box_heldout_rmse", "  of the best black box", " m/s"},
    {"from_truth_heldout_rmse", "  fitted from the truth", " m/s", kUnsolved},
    {"true_model_heldout_rmse", "  of fitted constants", " m/s"},
    {"sticking_exact_zero_fraction", "predicted at exactly 0", " of the held-out steps that end at rest", kNoRest,
     true},
    {"sticking_close_fraction", "  within dt mu g / 1000", " of them", kNoRest, true},
    {"rollout_rmse", "rollout rmse", " m/s", kUnsolved},
    {"black_box_rollout_rmse", "  of the best black box", " m/s"},
    {"perturbed_rollout_rmse", "  of the true system", " m/s, if its velocities had errors of the held-out rmse"},
    {"unknowns", "unknowns of the LCP", ""},
    {"parameter_error", "parameter error", " against the block of the flags"},
    {"max_row_error", "largest error of a row", ""},
    {"objective", "objective", ""},
    {"lower_bound", "  lower bound", ""},
    {"objective_at_truth", "objective at the truth", ""},
    {"heldout_log_likelihood", "log likelihood", " for each held-out step"},
    {"true_log_likelihood", "  of the true chain", ""},
    {"single_log_likelihood", "  of one LCP", ""},
    {"state_accuracy", "states found", " of the held-out steps", "none", true},
    {"true_state_accuracy", "  by the true chain", " of them", "none", true},
    {"mu_error", "largest error of mu", ""},
    {"transition_error", "  of a transition", ""},
    {"direction_error", "error of the directions", ", the largest distance of a true one to the nearest learned one"},
};

// The tolerance of `sticking_close_fraction` is a metric where it is not dt mu g / 1000.
std::string label_of(const SummaryLine& line, const nlohmann::json& metrics) {
  if (std::string_view(line.key) != "sticking_close_fraction" || !metrics.contains("sticking_tolerance")) {
    return line.label;
  }
  return "  within " + short_number(metrics["sticking_tolerance"].get<double>()) + " m/s";
}

// The text up to a blank before the largest width of a line.
std::string cut(const std::string& text, std::size_t width) {
  return text.size() <= width ? text : text.substr(0, text.rfind(' ', width)) + " ...";
}

}  // namespace

nlohmann::json to_json(const torch::Tensor& x) {
  if (x.dim() == 0) return x.item<double>();
  nlohmann::json json = nlohmann::json::array();
  for (std::int64_t k = 0; k < x.size(0); ++k) json.push_back(to_json(x[k]));
  return json;
}

nlohmann::json unexplained(const std::string& what, double error, double allowed, const std::string& unit) {
  if (error <= allowed) return nlohmann::json::array();
  const std::string why = std::isnan(error)
                              ? " are not predicted where a step has no solution"
                              : " are off by " + short_number(error) + unit +
                                    "; noise and negligible errors make at most " + short_number(allowed) + unit;
  return nlohmann::json::array({std::string(kUnexplained) + ": " + what + why});
}

std::string markdown(const nlohmann::json& rows, const std::vector<MarkdownColumn>& columns) {
  const auto text = [](const nlohmann::json& value, bool is_share) -> std::string {
    if (value.is_string()) return value;
    if (!value.is_number() || !std::isfinite(value.get<double>())) return "-";
    return is_share ? percentage(value.get<double>()) : short_number(value.get<double>());
  };
  std::vector<std::string> fields;
  for (const MarkdownColumn& column : columns) fields.emplace_back(column.title);
  std::string table = table_head(fields);
  for (const auto& row : rows) {
    fields.clear();
    for (const auto& [key, title, is_share] : columns) {
      fields.push_back(text(row.value(key, nlohmann::json()), is_share));
    }
    table += table_row(fields);
  }
  return table;
}

void write_results(OutputFolder& out, const nlohmann::json& of_the_fit, const std::vector<std::string>& names) {
  nlohmann::json metrics = of_the_fit;
  if (metrics.contains("unexplained")) {
    const bool explained = metrics["unexplained"].empty();
    if (!metrics.contains("status")) metrics["status"] = explained ? "solved" : kUnexplained;
    for (const std::string line : metrics["unexplained"]) {
      if (!out.quiet()) std::cerr << "warning: " << line << std::endl;
    }
  }
  out.write_json("metrics.json", metrics);
  const std::vector<std::filesystem::path> figures = draw_figures(out, names);
  if (out.quiet()) return;
  for (const SummaryLine& line : kSummary) {
    if (!metrics.contains(line.key) || !metrics[line.key].is_number()) continue;
    const double value = metrics[line.key].get<double>();
    std::cout << padded(label_of(line, metrics), 24)
              << (std::isfinite(value) ? (line.is_share ? percentage(value) : short_number(value)) + line.unit
                                       : line.otherwise)
              << "\n";
  }
  if (metrics.contains("identifiable_parameters")) {
    std::cout << "identifiable            " << metrics["identifiable_parameters"] << " of " << metrics["parameters"]
              << " parameters at the result\n";
    const auto& directions = metrics["unidentifiable_directions"];
    for (std::size_t k = 0; k < std::min(directions.size(), kDirectionsShown); ++k) {
      std::cout << "  without effect there  " << cut(directions[k].get<std::string>(), kDirectionWidth) << "\n";
    }
    if (directions.size() > kDirectionsShown) {
      std::cout << "  and " << directions.size() - kDirectionsShown << " more in metrics.json\n";
    }
  }
  for (const char* file : {"model.pt", "model.pt2", "table.md", "metrics.json"}) {
    if (has_written(out.path(), file)) std::cout << (out / file).string() << "\n";
  }
  for (const auto& figure : figures) std::cout << figure.string() << "\n";
  std::cout << std::flush;
}

}  // namespace lcp::training
