// The folder --out of a run, in which nothing of a user's is removed or overwritten unless --overwrite is given.
#pragma once

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>

#include "run/command_line.h"
#include "run/files.h"
#include "run/folder_lock.h"

namespace lcp::training {

/// The folder of a run's figures, within --out.
constexpr const char* kFigures = "figures/";

/// The files of a run by their names, each with the hashes (hash_of) of the contents that the run may have given it. A
/// name that ends with "/" is the folder of another run, whose own config.json lists its files.
using FileList = std::map<std::string, std::set<std::string>>;

/// The folder --out. The following holds at every moment, even where the process is killed:
///
/// * config.json has an entry that only programs of this project write, and a FileList of the files in the folder that
///   the run wrote. A content enters the list before it gets its name: while a file is being replaced, the list has the
///   hashes of its old and of its new content. A name leaves the list after the file is gone. config.json itself has no
///   hash: it is replaced, whatever its flags are.
/// * A file that is not listed, or whose content has none of its hashes since somebody changed it, belongs to the user.
///   A run that finds one stops. With --overwrite it continues, and replaces only those that have the name of a file
///   that it writes itself, once the new content is on the disk.
/// * All listed files belong to the run whose flags config.json holds. The files of an earlier run stay until the first
///   file of this run and its config.json are on the disk under unfinished names. Then the earlier files are removed,
///   metrics.json first, and the new ones are renamed. Only the figures of an earlier run stay until they are drawn
///   again, if its flags and the contents of the files that it read are the same.
/// * Every file is complete, since it is an UnfinishedFile until it is. Unfinished files of killed runs are removed by
///   the next run.
/// * No file that the flags name for reading is in the folder, so that a run cannot remove its own input.
/// * Only one process uses the folder, by a FolderLock: of a group of processes the first one. In the others nothing is
///   read or written. Where another process uses the folder of a listed run, this run
///   stops before it removes anything.
class OutputFolder {
 public:
  /// To be called after the flags and the data have been checked, and before long computations: says what processes
  /// and threads these will use, where there are several processes. Throws a UsageError
  /// where an input file (CommandLine::input_files) is in the folder, where another process uses the folder of a listed
  /// run or, unless --overwrite is given, where the folder holds a file of the user's.
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

  /// Adds the folder of another run, a name that ends with "/", to the list in config.json. To be called before that
  /// run starts.
  void announce(const std::string& folder);

  /// Writes the file of that name, relative to the folder. Throws a UsageError where that fails and, unless --overwrite
  /// is given, where a file of the user's has the name. If it throws since there is no room on the disk for the new
  /// content, the folder is as it was before.
  void write(const std::string& name, const std::string& content);
  void write_json(const std::string& name, const nlohmann::json& json) { write(name, json.dump(2) + "\n"); }
  void write_csv(const std::string& name, const Table& table) { write(name, csv_text(table)); }

 private:
  void refuse_inputs() const;
  void refuse_foreign_files() const;
  nlohmann::json description() const;  // config.json without what kRunEntry and kFilesEntry name
  bool repeats_earlier_run() const;
  void list(const std::string& name, std::set<std::string> hashes);
  UnfinishedFile new_config(const FileList& files) const;

  const CommandLine& line_;
  const RunFlags& run_;
  const FolderLock lock_;
  const bool writes_;                            // whether this is the first of its group of processes
  const nlohmann::json inputs_;                  // the hashes of the files that the run reads, by their flags
  const std::optional<nlohmann::json> earlier_;  // config.json of the earlier run
  FileList files_;                               // the list in config.json
  bool begun_ = false;                           // whether config.json belongs to this run
};

/// Whether the folder holds a file of that name as the run in the folder wrote it.
bool has_written(const std::filesystem::path& folder, const std::string& name);

}  // namespace lcp::training
