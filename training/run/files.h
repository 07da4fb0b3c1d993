// Files that are whole or not there: CSV tables and JSON.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace lcp::training {

/// Writes to a temporary file in the same folder, flushes it to the disk and renames it, so that neither an error nor
/// a kill leaves half a file. Creates the folder.
void write_file(const std::filesystem::path& path, const std::string& content);

void write_json(const std::filesystem::path& path, const nlohmann::json& json);

/// Throws a UsageError that names the file.
nlohmann::json read_json(const std::filesystem::path& path);

/// Columns of numbers, all of one length.
struct Table {
  std::vector<std::string> names;
  std::vector<std::vector<double>> columns;

  void add(const std::string& name, std::vector<double> values);
  void add_row(const std::vector<double>& values);  ///< a number for each name
  std::size_t rows() const { return columns.empty() ? 0 : columns.front().size(); }
  bool has(const std::string& name) const;
  const std::vector<double>& operator[](const std::string& name) const;  ///< throws std::out_of_range
};

/// One row a line after a header, 17 significant digits: what is read again has the same bits.
void write_csv(const std::filesystem::path& path, const Table& table);

/// Reads the columns `required`, and those of `optional` that the file has; others are ignored. Throws a UsageError
/// that names the file and, where there is one, the line and the column: no such file, no rows, a missing or repeated
/// column, a short or long row, a value that is no finite number.
Table read_csv(const std::filesystem::path& path, const std::vector<std::string>& required,
               const std::vector<std::string>& optional = {});

}  // namespace lcp::training
