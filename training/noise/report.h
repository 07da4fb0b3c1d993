// What a study of noise came to: tables, a page, metrics, and a few lines.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "noise/study.h"
#include "run/output_folder.h"

namespace lcp::training {

/// table.csv, errors.csv, single_entries.csv and biases.csv.
void write_tables(OutputFolder& out, const Study& study);

/// Markdown.
std::string page_of(const Study& study);

nlohmann::json metrics_of(const Study& study);

/// On the console.
void summarise(const Study& study, const nlohmann::json& metrics);

}  // namespace lcp::training
