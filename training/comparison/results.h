// The table of a comparison of methods.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "comparison/plan.h"

namespace lcp::training {

class Results {
 public:
  /// metrics: the result of `perform`.
  void add(const ComparisonRun& run, const nlohmann::json& metrics);

  /// Computes median, minimum and maximum of each metric over the seeds. To be called after all runs have been added.
  void summarise();

  /// A row for each method and start: method, start, learns_from, runs, and a summary of each metric.
  const std::vector<nlohmann::json>& rows() const { return rows_; }

  /// The same rows without times, which the same flags and seeds always reproduce.
  std::vector<nlohmann::json> repeatable() const;

  /// The content of table.md.
  std::string page(const ComparisonFlags& flags) const;

  /// Prints the main columns to stdout.
  void print() const;

  /// A line on stderr for each run that failed and, unless quiet, each method that is not built. Returns whether a run
  /// failed.
  bool report_failures(const std::string& program, bool quiet) const;

 private:
  nlohmann::json& row_of(const ComparisonRun& run);

  std::vector<nlohmann::json> rows_;
};

}  // namespace lcp::training
