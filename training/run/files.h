// Reads and writes files, CSV tables and JSON. A file is written whole or not at all.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace lcp::training {

/// The names of files that are still being written begin with this.
constexpr const char* kUnfinishedPrefix = ".torchlcp-";

/// The new content of a file under an unfinished name, until `finish` renames it: after an error or a kill the file is
/// as it was before. Symbolic links in the place of either file are not followed.
class UnfinishedFile {
 public:
  /// Writes the new content of `path` to a new file in `folder`, which must be on the same file system, and flushes it
  /// to the disk. Creates `folder`. Throws a UsageError that names `path`.
  UnfinishedFile(std::filesystem::path path, const std::string& content, const std::filesystem::path& folder);

  /// Removes the new file unless it has been renamed.
  ~UnfinishedFile();
  UnfinishedFile(const UnfinishedFile&) = delete;
  UnfinishedFile& operator=(const UnfinishedFile&) = delete;

  /// Creates the folder of `path`, and renames the new file. Throws a UsageError that names `path`.
  void finish();

 private:
  std::filesystem::path path_, unfinished_;  // unfinished_ is empty after finish()
};

/// Writes an UnfinishedFile in the folder of `path` and finishes it.
void write_file(const std::filesystem::path& path, const std::string& content);

void write_json(const std::filesystem::path& path, const nlohmann::json& json);

/// Throws a UsageError that names the file.
std::string read_file(const std::filesystem::path& path);

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

/// The table as CSV: a header, then one line for each row, with 17 significant digits, so that reading restores the
/// same bits.
std::string csv_text(const Table& table);
void write_csv(const std::filesystem::path& path, const Table& table);

/// Reads the columns `required`, and those of `optional` that the file has; others are ignored. Throws a UsageError
/// that names the file and, where there is one, the line and the column: no such file, no rows, a missing or repeated
/// column, a short or long row, a value that is no finite number.
Table read_csv(const std::filesystem::path& path, const std::vector<std::string>& required,
               const std::vector<std::string>& optional = {});

}  // namespace lcp::training
