// Writes the results of a noise study: CSV tables, a Markdown page, metrics and a summary.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "noise/study.h"
#include "run/output_folder.h"

namespace lcp::training {

/// Writes table.csv, errors.csv, single_entries.csv and biases.csv.
void write_tables(OutputFolder& out, const Study& study);

/// The content of table.md: the results as a Markdown page.
std::string page_of(const Study& study);

/// The content of metrics.json.
nlohmann::json metrics_of(const Study& study);

/// Prints a summary to stdout.
void summarise(const Study& study, const nlohmann::json& metrics);

}  // namespace lcp::training
