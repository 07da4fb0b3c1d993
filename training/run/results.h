// The end of a run: its metrics, its figures, and a summary.
#pragma once

#include <torch/types.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "run/output_folder.h"

namespace lcp::training {

/// The entries of the tensor as nested lists.
nlohmann::json to_json(const torch::Tensor& x);

/// Writes metrics.json, draws `figures` (see draw_figures), and prints the main metrics and the paths of the results.
void write_results(OutputFolder& out, const nlohmann::json& metrics, const std::vector<std::string>& figures);

}  // namespace lcp::training
