#include "run/results.h"

#include <cmath>
#include <filesystem>
#include <iostream>

#include "run/figures.h"
#include "run/text.h"

namespace lcp::training {
namespace {

// The metrics of the summary, in this order.
struct SummaryLine {
  const char* key;
  const char* label;
  const char* unit;
  const char* otherwise;  // shown where the metric is no number
};
constexpr SummaryLine kSummary[] = {
    {"mu", "friction coefficient", "", "none"},
    {"stiffness", "stiffness", " N/m", "none"},
    {"heldout_rmse", "held-out rmse", " m/s", "none: some steps have no solution"},
    {"black_box_heldout_rmse", "  of the best black box", " m/s", "none"},
    {"from_truth_heldout_rmse", "  fitted from the truth", " m/s", "none: there is no noise, or no known truth"},
    {"true_model_heldout_rmse", "  of fitted constants", " m/s", "none: the truth is not known"},
    {"sticking_exact_zero_fraction", "exact zeros, sticking", "", "nothing sticks"},
    {"sticking_close_fraction", "  within dt mu g / 1000", "", "nothing sticks"},
    {"rollout_rmse", "rollout rmse", " m/s", "none: some steps have no solution"},
    {"black_box_rollout_rmse", "  of the best black box", " m/s", "none"},
    {"perturbed_rollout_rmse", "  of perturbed truth", " m/s", "none: the truth is not known"},
    {"unknowns", "unknowns of the LCP", "", "none"},
    {"parameter_error", "parameter error", " against the block of the flags", "none"},
    {"max_row_error", "largest error of a row", "", "none"},
    {"objective", "objective", "", "none"},
    {"lower_bound", "  lower bound", "", "none"},
    {"objective_at_truth", "objective at the truth", "", "none"},
};

}  // namespace

nlohmann::json to_json(const torch::Tensor& x) {
  if (x.dim() == 0) return x.item<double>();
  nlohmann::json json = nlohmann::json::array();
  for (std::int64_t k = 0; k < x.size(0); ++k) json.push_back(to_json(x[k]));
  return json;
}

void write_results(OutputFolder& out, const nlohmann::json& metrics, const std::vector<std::string>& names) {
  out.write_json("metrics.json", metrics);
  const std::vector<std::filesystem::path> figures = draw_figures(out, names);
  if (out.quiet()) return;
  for (const SummaryLine& line : kSummary) {
    if (!metrics.contains(line.key) || metrics[line.key].is_array()) continue;
    const auto& value = metrics[line.key];
    const bool finite = value.is_number() && std::isfinite(value.get<double>());
    std::cout << padded(line.label, 24) << (finite ? short_number(value.get<double>()) + line.unit : line.otherwise)
              << "\n";
  }
  if (metrics.contains("identifiable_parameters")) {
    std::cout << "identifiable            " << metrics["identifiable_parameters"] << " of " << metrics["parameters"]
              << " parameters at the result\n";
    for (const std::string direction : metrics["unidentifiable_directions"]) {
      std::cout << "  without effect there  " << direction << "\n";
    }
  }
  for (const char* file : {"model.pt", "table.md", "metrics.json"}) {
    if (has_written(out.path(), file)) std::cout << (out / file).string() << "\n";
  }
  for (const auto& figure : figures) std::cout << figure.string() << "\n";
  std::cout << std::flush;
}

}  // namespace lcp::training
