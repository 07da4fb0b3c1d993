#include "run/output_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "run/error.h"

namespace lcp::training {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr const char* kConfig = "config.json";
constexpr const char* kMetrics = "metrics.json";
constexpr const char* kFigures = "figures/";

// Results of early versions, whose runs did not list their files. They are removed only with --overwrite.
constexpr const char* kUnlistedResults[] = {kMetrics, "model.pt", "checkpoint.pt", "history.csv"};

bool is_real_folder(const fs::path& path) {
  std::error_code none;
  return fs::symlink_status(path, none).type() == fs::file_type::directory;
}

bool is_real_file(const fs::path& path) {
  std::error_code none;
  return fs::symlink_status(path, none).type() == fs::file_type::regular;
}

bool is_unfinished(const fs::path& path) { return path.filename().string().starts_with(kUnfinishedPrefix); }

// Whether the path stays inside the folder. The list of files may come from an untrusted config.json.
bool is_inside(const std::string& name) {
  const fs::path path(name);
  return !name.empty() && path.is_relative() && name.find('\0') == std::string::npos &&
         std::none_of(path.begin(), path.end(), [](const fs::path& part) { return part == ".." || part == "."; });
}

// Whether no folder on the way from `folder` to the file is a symbolic link.
bool is_reached_without_links(const fs::path& folder, const std::string& name) {
  fs::path path = folder;
  for (const fs::path& part : fs::path(name).parent_path()) {
    path /= part;
    if (!is_real_folder(path)) return false;
  }
  return true;
}

// The config.json of a run in the folder; nullopt where there is none, or it has no valid list of files.
std::optional<json> read_config(const fs::path& folder) {
  if (!is_real_file(folder / kConfig)) return std::nullopt;
  try {
    json config = training::read_json(folder / kConfig);
    if (!config.is_object() || !config.contains("program") || !config["program"].is_string()) return std::nullopt;
    if (!config.contains("files") || !config["files"].is_array()) return std::nullopt;
    for (const json& name : config["files"]) {
      if (!name.is_string() || !is_inside(name.get<std::string>())) return std::nullopt;
    }
    return config;
  } catch (const UsageError&) {
    return std::nullopt;
  }
}

std::set<std::string> listed(const json& config) { return config["files"].get<std::set<std::string>>(); }

// All files that runs wrote: those that the folder's config.json lists, and those of runs in subfolders that it lists.
std::set<std::string> files_of_runs(const fs::path& folder) {
  const std::optional<json> config = read_config(folder);
  if (!config) return {};
  std::set<std::string> files = {kConfig};
  for (const std::string& name : listed(*config)) {
    if (!name.ends_with('/')) {
      files.insert(name);
    } else if (is_reached_without_links(folder, name)) {
      for (const std::string& inner : files_of_runs(folder / name)) files.insert(name + inner);
    }
  }
  return files;
}

void remove_file(const fs::path& path) {
  std::error_code error;
  if (is_real_file(path)) fs::remove(path, error);
  if (error) throw UsageError("cannot remove " + path.string() + ": " + error.message());
}

// Removes the folders on the way from `folder` to the file that are empty now.
void remove_empty_folders(const fs::path& folder, const std::string& name) {
  for (fs::path inner = fs::path(name).parent_path(); !inner.empty(); inner = inner.parent_path()) {
    if (rmdir((folder / inner).c_str()) != 0) return;
  }
}

}  // namespace

OutputFolder::OutputFolder(const CommandLine& line, const RunFlags& run) : line_(line), run_(run) {
  create();
  try {
    lock();
    if (!run.overwrite) refuse_foreign_files();
    remove_unfinished_files();
  } catch (...) {
    close(descriptor_);
    throw;
  }
  earlier_ = read_config(path());
  if (earlier_) files_ = listed(*earlier_);
}

OutputFolder::~OutputFolder() {
  for (auto folder = created_.rbegin(); folder != created_.rend(); ++folder) rmdir(folder->c_str());
  close(descriptor_);
}

void OutputFolder::create() {
  std::error_code error;
  for (fs::path missing = path(); !missing.empty() && !fs::exists(missing, error); missing = missing.parent_path()) {
    if (!error) created_.insert(created_.begin(), missing);
  }
  fs::create_directories(path(), error);
  if (error) throw UsageError("cannot create " + path().string() + ": " + error.message());
}

void OutputFolder::lock() {
  descriptor_ = open(path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor_ < 0) {
    throw UsageError("cannot open " + path().string() + ": " + std::generic_category().message(errno));
  }
  // On file systems that have no locks the folder is used without one.
  if (flock(descriptor_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    throw UsageError("--out " + path().string() + " is in use by another run");
  }
}

void OutputFolder::refuse_foreign_files() const {
  const std::set<std::string> known = files_of_runs(path());
  std::error_code error;
  auto entry = fs::recursive_directory_iterator(path(), error);
  for (; !error && entry != fs::recursive_directory_iterator(); entry.increment(error)) {
    const fs::path file = entry->path();
    if (is_real_folder(file)) continue;
    const bool ours = known.contains(file.lexically_relative(path()).string()) || is_unfinished(file);
    if (ours && is_real_file(file)) continue;
    throw UsageError("--out " + path().string() + " holds " + file.lexically_relative(path()).string() +
                     ", which no run of this version wrote; choose another folder, or add --overwrite");
  }
  if (error) throw UsageError("cannot read " + path().string() + ": " + error.message());
}

void OutputFolder::remove_unfinished_files() const {
  std::set<fs::path> folders = {path()};
  for (const std::string& name : files_of_runs(path())) {
    if (is_reached_without_links(path(), name)) folders.insert((path() / name).parent_path());
  }
  for (const fs::path& folder : folders) {
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(folder, error)) {
      if (is_unfinished(entry.path())) remove_file(entry.path());
    }
  }
}

void OutputFolder::continue_earlier_run() {
  if (!earlier_) return;
  begun_ = true;
  write_config();
}

void OutputFolder::announce(const std::vector<std::string>& names) {
  const std::set<std::string> before = files_;
  if (!begun_) remove_earlier_run();
  files_.insert(names.begin(), names.end());
  if (!begun_ || files_ != before) write_config();
  begun_ = true;
}

void OutputFolder::write(const std::string& name, const std::string& content) {
  announce({name});
  std::error_code error;
  fs::create_directories((path() / name).parent_path(), error);
  if (!is_reached_without_links(path(), name)) {
    throw UsageError("cannot write " + (path() / name).string() + ": a folder on the way is a symbolic link or a file");
  }
  write_file(path() / name, content);
}

void OutputFolder::remove_earlier_run() {
  std::set<std::string> files = files_of_runs(path());
  if (run_.overwrite) files.insert(std::begin(kUnlistedResults), std::end(kUnlistedResults));
  json flags = earlier_.value_or(json());
  if (flags.is_object()) flags.erase("files");
  const bool same_flags = flags == line_.config();

  std::vector<std::string> names(files.begin(), files.end());
  // All metrics.json are removed first, so that a partly removed run does not look complete; the lists of files last.
  const auto order = [](const std::string& name) {
    const std::string file = fs::path(name).filename();
    return file == kMetrics ? 0 : file == kConfig ? 2 : 1;
  };
  std::stable_sort(names.begin(), names.end(),
                   [&](const std::string& a, const std::string& b) { return order(a) < order(b); });
  files_.clear();
  for (const std::string& name : names) {
    if (name == kConfig) continue;  // write_config replaces it
    if (same_flags && name.starts_with(kFigures)) {
      files_.insert(name);
    } else if (is_reached_without_links(path(), name)) {
      remove_file(path() / name);
      remove_empty_folders(path(), name);
    }
  }
}

void OutputFolder::write_config() {
  json config = line_.config();
  config["files"] = files_;
  write_file(path() / kConfig, config.dump(2) + "\n");
}

}  // namespace lcp::training
