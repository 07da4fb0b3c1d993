// The end of a run: its metrics, its figures, and a summary.
#pragma once

#include <torch/types.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "run/output_folder.h"

namespace lcp::training {

/// The status of a fit that is far from the noise of its data.
constexpr const char* kUnexplained = "the fit does not explain the data";

/// The entries of the tensor as nested lists.
nlohmann::json to_json(const torch::Tensor& x);

/// The entry `unexplained` of metrics.json of a program that fits a model: a line where the fit is far from the noise
/// of its data, since `error` is above `allowed` or no number, and none where it is not.
///   what: whose error it is, such as "held-out velocities". unit: such as " m/s".
nlohmann::json unexplained(const std::string& what, double error, double allowed, const std::string& unit);

/// A column of a Markdown table: the key of its entries, and its title.
struct MarkdownColumn {
  const char* key;
  const char* title;
  bool is_share = false;  ///< shown in percent
};

/// The rows, objects, as a Markdown table, with "-" for what is neither a text nor a finite number.
std::string markdown(const nlohmann::json& rows, const std::vector<MarkdownColumn>& columns);

/// Writes metrics.json, draws `figures` (see draw_figures), and prints the main metrics and the paths of the results.
/// Metrics with an entry `unexplained` get a `status`, unless they have one that tells why there is no fit: "solved"
/// where that list is empty, and kUnexplained where it is not; each of its lines is a warning on stderr.
void write_results(OutputFolder& out, const nlohmann::json& metrics, const std::vector<std::string>& figures);

}  // namespace lcp::training
