// The folder --out of a run. A user's own files in it are never removed, and overwritten only with --overwrite.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "run/command_line.h"
#include "run/files.h"

namespace lcp::training {

/// The folder --out. The following holds at every moment, even where the process is killed:
///
/// * config.json lists under "files" every file in the folder that a run of this project wrote. A name enters the list
///   before its file appears, and leaves it after the file is gone. Files that are not listed belong to the user: a
///   run that finds one stops, and no run ever removes one. A name that ends with "/" is the folder of another run,
///   whose own config.json lists its files.
/// * All listed files belong to the run whose flags config.json holds. The files of an earlier run stay until this run
///   writes its first one; then they are removed, metrics.json first, before config.json is replaced. Only the figures
///   of an earlier run with the same flags stay until they are drawn again.
/// * Every file is complete: it is written under an unfinished name (see write_file) and renamed. Unfinished files of
///   killed runs are removed by the next run.
/// * Only one process uses the folder: it holds the lock flock(2) of the folder.
class OutputFolder {
 public:
  /// Creates and locks the folder. To be called after the flags and the data have been checked, and before long
  /// computations. Throws a UsageError where another run holds the lock or, unless --overwrite is given, where the
  /// folder holds a file that no run wrote.
  OutputFolder(const CommandLine& line, const RunFlags& run);

  /// Removes the folder again where it was created and nothing was written into it.
  ~OutputFolder();
  OutputFolder(const OutputFolder&) = delete;
  OutputFolder& operator=(const OutputFolder&) = delete;

  const std::string& program() const { return line_.program(); }
  nlohmann::json flags() const { return line_.config(); }  ///< as config.json has them
  bool quiet() const { return run_.quiet; }
  const std::filesystem::path& path() const { return run_.out; }
  std::filesystem::path operator/(const std::string& name) const { return run_.out / name; }

  /// Whether the folder holds an earlier run.
  bool has_earlier_run() const { return earlier_.has_value(); }

  /// Keeps the files of the earlier run, which this run continues. To be called before anything is written.
  void continue_earlier_run();

  /// Adds to the list in config.json the names of files that other processes are going to write.
  void announce(const std::vector<std::string>& names);

  /// Writes the file of that name, relative to the folder. Throws a UsageError where that fails.
  void write(const std::string& name, const std::string& content);
  void write_json(const std::string& name, const nlohmann::json& json) { write(name, json.dump(2) + "\n"); }
  void write_csv(const std::string& name, const Table& table) { write(name, csv_text(table)); }

 private:
  void create();
  void lock();
  void refuse_foreign_files() const;
  void remove_unfinished_files() const;
  void remove_earlier_run();
  void write_config();

  const CommandLine& line_;
  const RunFlags& run_;
  std::vector<std::filesystem::path> created_;  // folders that did not exist before, the outermost first
  int descriptor_ = -1;                         // file descriptor of the folder, which holds the lock
  std::optional<nlohmann::json> earlier_;       // config.json of the earlier run
  std::set<std::string> files_;                 // the list in config.json
  bool begun_ = false;                          // whether config.json belongs to this run
};

}  // namespace lcp::training
