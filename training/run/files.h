// Reads and writes files, CSV tables and JSON. A file is written whole or not at all.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace lcp::training {

/// A path in the folder for what is still being written: .torchlcp-, the number of this process, - and a count.
std::filesystem::path unfinished_path(const std::filesystem::path& folder);

/// Whether the path ends with such a name.
bool is_unfinished(const std::filesystem::path& path);

/// The new content of a file under an unfinished name, until `finish` renames it: after an error or a kill the file is
/// as it was before. Symbolic links in the place of either file are not followed.
class UnfinishedFile {
 public:
  /// Writes the new content of `path` to a new file in `folder`, which must be on the same file system, and flushes it
  /// to the disk. Throws a UsageError that names `path`.
  UnfinishedFile(std::filesystem::path path, const std::string& content, const std::filesystem::path& folder);

  /// Removes the new file unless it has been renamed.
  ~UnfinishedFile();
  UnfinishedFile(const UnfinishedFile&) = delete;
  UnfinishedFile& operator=(const UnfinishedFile&) = delete;

  /// Renames the new file. Throws a UsageError that names `path`.
  void finish();

 private:
  std::filesystem::path path_, unfinished_;  // unfinished_ is empty after finish()
};

/// A new folder with an unfinished name, removed with all that it holds when this object is destroyed.
class UnfinishedFolder {
 public:
  /// Throws a UsageError where it cannot be created in `folder`.
  explicit UnfinishedFolder(const std::filesystem::path& folder);
  ~UnfinishedFolder();
  UnfinishedFolder(const UnfinishedFolder&) = delete;
  UnfinishedFolder& operator=(const UnfinishedFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

/// The hash FNV-1a, 64 bits, of the bytes.
///   hash: that of the bytes before these.
std::uint64_t hash_of(std::string_view bytes, std::uint64_t hash = 0xcbf29ce484222325u);

/// Throws a UsageError that names the file.
std::string read_file(const std::filesystem::path& path);

/// The JSON object in the file. Throws a UsageError that names the file, also where it holds other JSON.
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

/// The names in the first line of a CSV file. Throws a UsageError that names the file.
std::vector<std::string> csv_columns(const std::filesystem::path& path);

/// Reads the columns `required`, and those of `optional` that the file has; others are ignored. Throws a UsageError
/// that names the file and, where there is one, the line and the column: no such file, no rows, a missing or repeated
/// column, a short or long row, a value that is no finite number.
Table read_csv(const std::filesystem::path& path, const std::vector<std::string>& required,
               const std::vector<std::string>& optional = {});

}  // namespace lcp::training
