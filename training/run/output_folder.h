// The folder --out of a run, in which nothing of a user's is removed or overwritten unless --overwrite is given.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "run/command_line.h"
#include "run/files.h"
#include "run/folder_lock.h"

namespace lcp::training {

/// The folder --out. The following holds at every moment, even where the process is killed:
///
/// * config.json has an entry that only programs of this project write, and lists under "files" every file in the
///   folder that the run wrote. A name enters the list before its file appears, and leaves it after the file is gone. A
///   name that ends with "/" is the folder of another run, whose own config.json lists its files.
/// * Files that are not listed belong to the user. A run that finds one stops. With --overwrite it continues, and
///   replaces only those that have the name of a file that it writes itself.
/// * All listed files belong to the run whose flags config.json holds. The files of an earlier run stay until the first
///   file of this run and its config.json are on the disk under unfinished names. Then the earlier files are removed,
///   metrics.json first, and the new ones are renamed. Only the figures of an earlier run with the same flags stay
///   until they are drawn again.
/// * Every file is complete, since it is an UnfinishedFile until it is. Unfinished files of killed runs are removed by
///   the next run.
/// * Only one process uses the folder, by a FolderLock. Where another process uses the folder of a listed run, this run
///   stops before it removes anything.
class OutputFolder {
 public:
  /// To be called after the flags and the data have been checked, and before long computations. Throws a UsageError
  /// where another process uses the folder of a listed run or, unless --overwrite is given, where the folder holds a
  /// file that no run wrote.
  ///   lock: the lock of the folder --out. Who reads files of an earlier run takes it before.
  OutputFolder(const CommandLine& line, const RunFlags& run, FolderLock lock);

  /// Locks the folder first.
  OutputFolder(const CommandLine& line, const RunFlags& run) : OutputFolder(line, run, FolderLock(run.out)) {}

  const std::string& program() const { return line_.program(); }
  nlohmann::json flags() const { return line_.config(); }  ///< as config.json has them
  bool quiet() const { return run_.quiet; }
  const std::filesystem::path& path() const { return run_.out; }
  std::filesystem::path operator/(const std::string& name) const { return run_.out / name; }

  /// Whether the folder holds an earlier run.
  bool has_earlier_run() const { return earlier_.has_value(); }

  /// Keeps the files of the earlier run, which this run continues. To be called before anything is written.
  void continue_earlier_run();

  /// Adds to the list in config.json the names of files that other processes are going to write. With --overwrite,
  /// files of the user's that have these names are removed.
  void announce(const std::vector<std::string>& names);

  /// Writes the file of that name, relative to the folder. Throws a UsageError where that fails. If the reason is a
  /// full disk, the folder is as it was before.
  void write(const std::string& name, const std::string& content);
  void write_json(const std::string& name, const nlohmann::json& json) { write(name, json.dump(2) + "\n"); }
  void write_csv(const std::string& name, const Table& table) { write(name, csv_text(table)); }

 private:
  void refuse_foreign_files() const;
  bool has_same_flags_as_earlier_run() const;
  UnfinishedFile new_config(const std::set<std::string>& files) const;

  const CommandLine& line_;
  const RunFlags& run_;
  const FolderLock lock_;
  const std::optional<nlohmann::json> earlier_;  // config.json of the earlier run
  std::set<std::string> files_;                  // the list in config.json
  bool begun_ = false;                           // whether config.json belongs to this run
};

/// Whether the folder holds a file of that name which the run in the folder wrote.
bool has_written(const std::filesystem::path& folder, const std::string& name);

}  // namespace lcp::training
