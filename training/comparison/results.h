// The table of a comparison of methods.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "comparison/plan.h"

namespace lcp::training {

class Results {
 public:
  /// metrics: what `perform` returned.
  void add(const Run& run, const nlohmann::json& metrics);

  /// Medians, least and most over the seeds; once all runs are added.
  void summarise();

  /// A row for each method and start: method, start, learns_from, runs, and a summary of each metric.
  const std::vector<nlohmann::json>& rows() const { return rows_; }

  /// The same rows without times, which the same flags and seeds always reproduce.
  std::vector<nlohmann::json> repeatable() const;

  /// Markdown.
  std::string page(const ComparisonFlags& flags) const;

  /// On the console.
  void print() const;

  /// A line on stderr for each run that failed and, unless quiet, each method that is not built. Returns whether a run
  /// failed.
  bool report_failures(const std::string& program, bool quiet) const;

 private:
  nlohmann::json& row_of(const Run& run);

  std::vector<nlohmann::json> rows_;
};

}  // namespace lcp::training
