#include "run/output_folder.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "run/error.h"

namespace lcp::training {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr const char* kConfig = "config.json";
constexpr const char* kMetrics = "metrics.json";
constexpr const char* kFigures = "figures/";

// The value of kRunEntry, the version of the rules in output_folder.h. Folders of other versions belong to the user.
constexpr int kRunFormat = 1;

// The programs that write run folders.
constexpr std::array kPrograms = {"compare_methods",       "fit_linear_program", "identify_mpec",   "identify_shooting",
                                  "identify_tripod",       "reproduce_table",    "simulate",        "study_noise",
                                  "track_particle_filter", "train_bilevel",      "train_compliant", "train_direct",
                                  "train_in_the_loop",     "train_penalty",      "train_slack",     "train_structured"};

bool is_known_program(const json& program) {
  return std::any_of(kPrograms.begin(), kPrograms.end(), [&](const char* known) { return program == known; });
}

bool is_real_folder(const fs::path& path) {
  std::error_code none;
  return fs::symlink_status(path, none).type() == fs::file_type::directory;
}

bool is_real_file(const fs::path& path) {
  std::error_code none;
  return fs::symlink_status(path, none).type() == fs::file_type::regular;
}

bool is_unfinished(const fs::path& path) { return path.filename().string().starts_with(kUnfinishedPrefix); }

bool is_run_folder(const std::string& name) { return name.ends_with('/'); }

// Whether the path stays inside the folder. The list of files may come from an untrusted config.json.
bool is_inside(const std::string& name) {
  const fs::path path(name);
  return !name.empty() && path.is_relative() && name.find('\0') == std::string::npos &&
         std::none_of(path.begin(), path.end(), [](const fs::path& part) { return part == ".." || part == "."; });
}

// Whether every folder on the way from `folder` to the file is missing or is a real folder, not a symbolic link.
bool is_reached_without_links(const fs::path& folder, const std::string& name) {
  fs::path path = folder;
  for (const fs::path& part : fs::path(name).parent_path()) {
    path /= part;
    std::error_code none;
    const fs::file_type type = fs::symlink_status(path, none).type();
    if (type != fs::file_type::directory && type != fs::file_type::not_found) return false;
  }
  return true;
}

// The config.json of a run in the folder; nullopt where no run of this project wrote it, or it has no valid list of
// files.
std::optional<json> read_config(const fs::path& folder) {
  if (!is_real_file(folder / kConfig)) return std::nullopt;
  try {
    json config = training::read_json(folder / kConfig);
    if (!config.is_object() || config.value(kRunEntry, json()) != kRunFormat) return std::nullopt;
    if (!is_known_program(config.value("program", json()))) return std::nullopt;
    if (!config.contains(kFilesEntry) || !config[kFilesEntry].is_array()) return std::nullopt;
    for (const json& name : config[kFilesEntry]) {
      if (!name.is_string() || !is_inside(name.get<std::string>())) return std::nullopt;
    }
    return config;
  } catch (const UsageError&) {
    return std::nullopt;
  }
}

std::set<std::string> listed(const std::optional<json>& config) {
  if (!config) return {};
  return config->at(kFilesEntry).get<std::set<std::string>>();
}

// All files that runs wrote: those that the folder's config.json lists, and those of runs in subfolders that it lists.
std::set<std::string> files_of_runs(const fs::path& folder) {
  const std::optional<json> config = read_config(folder);
  if (!config) return {};
  std::set<std::string> files = {kConfig};
  for (const std::string& name : listed(config)) {
    if (!is_run_folder(name)) {
      files.insert(name);
    } else if (is_reached_without_links(folder, name)) {
      for (const std::string& inner : files_of_runs(folder / name)) files.insert(name + inner);
    }
  }
  return files;
}

// Throws a UsageError where another process uses the folder of a run that the config.json of `folder` lists.
void refuse_runs_in_use(const fs::path& folder) {
  for (const std::string& name : listed(read_config(folder))) {
    if (!is_run_folder(name) || !is_real_folder(folder / name) || !is_reached_without_links(folder, name)) continue;
    const FolderLock lock(folder / name);
    refuse_runs_in_use(folder / name);
  }
}

// Removes the file of that name in a folder.
void remove_file(const fs::path& folder, const std::string& name) {
  std::error_code error;
  const fs::path path = folder / name;
  if (is_real_file(path) && is_reached_without_links(folder, name)) fs::remove(path, error);
  if (error) throw UsageError("cannot remove " + path.string() + ": " + error.message());
}

// Removes the unfinished files of killed processes from the folders in which the run in `folder` writes its files.
void remove_unfinished_files(const fs::path& folder) {
  std::set<fs::path> places = {""};
  for (const std::string& name : listed(read_config(folder))) {
    if (!is_run_folder(name) && is_reached_without_links(folder, name)) places.insert(fs::path(name).parent_path());
  }
  for (const fs::path& place : places) {
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(folder / place, error)) {
      if (is_unfinished(entry.path())) remove_file(folder, place / entry.path().filename());
    }
  }
}

// Removes these files of the run in the folder, and the runs in subfolders among them. metrics.json is removed first,
// so that a partly removed run does not look complete; config.json stays. The caller holds the lock of the folder.
void remove_listed(const fs::path& folder, const std::set<std::string>& names) {
  const auto remove = [&](const std::string& name) {
    if (!is_run_folder(name)) {
      remove_file(folder, name);
    } else if (is_real_folder(folder / name) && is_reached_without_links(folder, name)) {
      const FolderLock lock(folder / name);
      remove_unfinished_files(folder / name);
      const std::optional<json> config = read_config(folder / name);
      remove_listed(folder / name, listed(config));
      if (config) remove_file(folder / name, kConfig);
    }
    for (fs::path place = fs::path(name).parent_path(); !place.empty(); place = place.parent_path()) {
      if (!remove_empty_folder(folder / place)) break;
    }
  };
  if (names.contains(kMetrics)) remove(kMetrics);
  for (const std::string& name : names) {
    if (name != kConfig) remove(name);
  }
}

}  // namespace

OutputFolder::OutputFolder(const CommandLine& line, const RunFlags& run, FolderLock lock)
    : line_(line), run_(run), lock_(std::move(lock)), earlier_(read_config(path())), files_(listed(earlier_)) {
  if (!is_known_program(program())) throw std::logic_error(program() + " is missing in kPrograms");
  refuse_runs_in_use(path());
  if (!run.overwrite) refuse_foreign_files();
  remove_unfinished_files(path());
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

void OutputFolder::continue_earlier_run() {
  if (!earlier_) return;
  new_config(files_).finish();
  begun_ = true;
}

void OutputFolder::announce(const std::vector<std::string>& names) {
  std::set<std::string> kept = files_;
  if (!begun_) {
    const bool same_flags = has_same_flags_as_earlier_run();
    std::erase_if(kept, [&](const std::string& name) { return !same_flags || !name.starts_with(kFigures); });
  }
  std::set<std::string> files = kept;
  files.insert(names.begin(), names.end());
  if (begun_ && files == files_) return;

  UnfinishedFile config = new_config(files);
  if (!begun_) {
    refuse_runs_in_use(path());
    std::set<std::string> removed;
    std::set_difference(files_.begin(), files_.end(), kept.begin(), kept.end(), std::inserter(removed, removed.end()));
    remove_listed(path(), removed);
  }
  for (const std::string& name : names) {
    if (!kept.contains(name)) remove_file(path(), name);  // It belongs to the user, who gave --overwrite.
  }
  config.finish();
  files_ = std::move(files);
  begun_ = true;
}

void OutputFolder::write(const std::string& name, const std::string& content) {
  const fs::path file = path() / name;
  if (!is_reached_without_links(path(), name)) {
    throw UsageError("cannot write " + file.string() + ": a folder on the way is a symbolic link or a file");
  }
  UnfinishedFile unfinished(file, content, path());
  announce({name});
  unfinished.finish();
}

bool OutputFolder::has_same_flags_as_earlier_run() const {
  if (!earlier_) return false;
  json flags = *earlier_;
  flags.erase(kRunEntry);
  flags.erase(kFilesEntry);
  return flags == line_.config();
}

UnfinishedFile OutputFolder::new_config(const std::set<std::string>& files) const {
  json config = line_.config();
  config[kRunEntry] = kRunFormat;
  config[kFilesEntry] = files;
  return {path() / kConfig, config.dump(2) + "\n", path()};
}

bool has_written(const fs::path& folder, const std::string& name) {
  return listed(read_config(folder)).contains(name) && is_real_file(folder / name);
}

}  // namespace lcp::training
