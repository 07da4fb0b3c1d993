#include "run/output_folder.h"

#include <algorithm>
#include <array>
#include <iostream>
#include <sstream>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "run/error.h"
#include "run/process_group.h"

namespace lcp::training {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr const char* kConfig = "config.json";
constexpr const char* kMetrics = "metrics.json";

// The value of kRunEntry, the version of the rules in output_folder.h. Folders of other versions belong to the user.
constexpr int kRunFormat = 2;

// The programs that write run folders.
constexpr std::array kPrograms = {
    "compare_methods",   "convert_tosses",       "evaluate_tosses",       "fit_linear_program", "identify_mpec",
    "identify_shooting", "identify_tripod",      "judge_gradients",       "reproduce_table",    "simulate",
    "study_noise",       "track_moving_horizon", "track_particle_filter", "train_bilevel",      "train_compliant",
    "train_direct",      "train_directions",     "train_in_the_loop",     "train_markov_chain", "train_mpec",
    "train_network",     "train_penalty",        "train_slack",           "train_structured",   "train_tosses"};

bool is_known_program(const json& program) {
  return std::any_of(kPrograms.begin(), kPrograms.end(), [&](const char* known) { return program == known; });
}

// The type of what is at the path, without following a symbolic link.
fs::file_type type_of(const fs::path& path) {
  std::error_code none;
  return fs::symlink_status(path, none).type();
}
bool is_real_folder(const fs::path& path) { return type_of(path) == fs::file_type::directory; }
bool is_real_file(const fs::path& path) { return type_of(path) == fs::file_type::regular; }

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
    const fs::file_type type = type_of(path);
    if (type != fs::file_type::directory && type != fs::file_type::not_found) return false;
  }
  return true;
}

// Whether the file is within the folder, once symbolic links are resolved.
bool is_within(const fs::path& file, const fs::path& folder) {
  std::error_code none;
  const fs::path relative = fs::weakly_canonical(file, none).lexically_relative(fs::canonical(folder, none));
  return !relative.empty() && *relative.begin() != "..";
}

std::string hash_text(const std::string& content) {
  std::ostringstream text;
  text << std::hex << hash_of(content);
  return text.str();
}

// Whether the path is a file with one of these contents.
bool is_file_with(const std::set<std::string>& hashes, const fs::path& path) {
  return is_real_file(path) && hashes.contains(hash_text(read_file(path)));
}

// The hashes of the files that the program reads and that are no flags themselves, by the flags that name them; null
// for what is no file, such as a pipe.
json hashes_of_inputs(const CommandLine& line) {
  json hashes = json::object();
  for (const auto& [flag, file] : line.input_files()) {
    std::error_code none;
    if (flag != kConfigFlag) hashes[flag] = fs::is_regular_file(file, none) ? json(hash_text(read_file(file))) : json();
  }
  return hashes;
}

// The config.json of a run in the folder; nullopt where no run of this project wrote it, or it has no valid list of
// files.
std::optional<json> read_config(const fs::path& folder) {
  if (!is_real_file(folder / kConfig)) return std::nullopt;
  try {
    json config = read_json(folder / kConfig);
    if (config.value(kRunEntry, json()) != kRunFormat) return std::nullopt;
    if (!is_known_program(config.value("program", json()))) return std::nullopt;
    for (const auto& [name, hashes] : config.at(kFilesEntry).get<FileList>()) {
      if (!is_inside(name)) return std::nullopt;
    }
    return config;
  } catch (const UsageError&) {
  } catch (const json::exception&) {
  }
  return std::nullopt;
}

FileList listed(const std::optional<json>& config) {
  if (!config) return {};
  return config->at(kFilesEntry).get<FileList>();
}

// All files that runs wrote: those that the folder's config.json lists, and those of runs in subfolders that it lists.
FileList files_of_runs(const fs::path& folder) {
  const std::optional<json> config = read_config(folder);
  if (!config) return {};
  FileList files = {{kConfig, {hash_text(read_file(folder / kConfig))}}};
  for (const auto& [name, hashes] : listed(config)) {
    if (!is_run_folder(name)) {
      files[name] = hashes;
    } else if (is_reached_without_links(folder, name)) {
      for (const auto& [inner, inner_hashes] : files_of_runs(folder / name)) files[name + inner] = inner_hashes;
    }
  }
  return files;
}

// Throws a UsageError where another process uses the folder of a run that the config.json of `folder` lists.
void refuse_runs_in_use(const fs::path& folder) {
  for (const auto& [name, hashes] : listed(read_config(folder))) {
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

// Removes the unfinished files and folders of killed processes from the folders in which the run in `folder` writes its
// files.
void remove_unfinished_files(const fs::path& folder) {
  std::set<fs::path> places = {""};
  for (const auto& [name, hashes] : listed(read_config(folder))) {
    if (!is_run_folder(name) && is_reached_without_links(folder, name)) places.insert(fs::path(name).parent_path());
  }
  for (const fs::path& place : places) {
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(folder / place, error)) {
      const bool real = is_real_file(entry.path()) || is_real_folder(entry.path());
      if (real && is_unfinished(entry.path())) fs::remove_all(entry.path(), error);
      if (error) throw UsageError("cannot remove " + entry.path().string() + ": " + error.message());
    }
  }
}

// Removes these files of the run in the folder, and the runs in subfolders among them; files that the user has changed
// stay. metrics.json is removed first, so that a partly removed run does not look complete; config.json stays. The
// caller holds the lock of the folder.
void remove_listed(const fs::path& folder, const FileList& files) {
  const auto remove = [&](const std::string& name, const std::set<std::string>& hashes) {
    if (!is_run_folder(name)) {
      if (is_file_with(hashes, folder / name)) remove_file(folder, name);
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
  if (const auto metrics = files.find(kMetrics); metrics != files.end()) remove(kMetrics, metrics->second);
  for (const auto& [name, hashes] : files) {
    if (name != kConfig) remove(name, hashes);
  }
}

[[noreturn]] void refuse(const fs::path& folder, const std::string& name, const char* why) {
  throw UsageError("--out " + folder.string() + " holds " + name + ", which " + why +
                   "; choose another folder, or add --overwrite");
}

constexpr const char* kForeign = "no run of this version wrote";
constexpr const char* kChanged = "was changed after a run wrote it";

}  // namespace

OutputFolder::OutputFolder(const CommandLine& line, const RunFlags& run, FolderLock lock)
    : line_(line),
      run_(run),
      lock_(std::move(lock)),
      writes_(ProcessGroup::current().is_first()),
      inputs_(writes_ ? hashes_of_inputs(line) : json()),
      earlier_(writes_ ? read_config(path()) : std::nullopt),
      files_(listed(earlier_)) {
  if (!is_known_program(program())) throw std::logic_error(program() + " is missing in kPrograms");
  if (!writes_) return;
  refuse_inputs();
  refuse_runs_in_use(path());
  if (!run.overwrite) refuse_foreign_files();
  remove_unfinished_files(path());
  const std::string processes = ProcessGroup::current().description(run.threads);
  if (!run.quiet && !processes.empty()) std::cerr << processes << std::endl;
}

void OutputFolder::refuse_inputs() const {
  for (const auto& [flag, file] : line_.input_files()) {
    if (!is_within(file, path())) continue;
    throw UsageError("--" + flag + " " + file.string() + " is in --out " + path().string() +
                     ", where a run replaces files; choose another folder for --out");
  }
}

void OutputFolder::refuse_foreign_files() const {
  const FileList known = files_of_runs(path());
  std::error_code error;
  auto entry = fs::recursive_directory_iterator(path(), error);
  for (; !error && entry != fs::recursive_directory_iterator(); entry.increment(error)) {
    const fs::path file = entry->path();
    const bool folder = is_real_folder(file);
    if (is_unfinished(file) && (folder || is_real_file(file))) {
      entry.disable_recursion_pending();
    } else if (!folder) {
      const std::string name = file.lexically_relative(path()).string();
      const auto found = known.find(name);
      if (found == known.end()) refuse(path(), name, kForeign);
      if (!is_file_with(found->second, file)) refuse(path(), name, kChanged);
    }
  }
  if (error) throw UsageError("cannot read " + path().string() + ": " + error.message());
}

void OutputFolder::continue_earlier_run() {
  if (!earlier_) return;
  new_config(files_).finish();
  begun_ = true;
}

void OutputFolder::announce(const std::string& folder) {
  if (writes_) list(folder, {});
}

void OutputFolder::write(const std::string& name, const std::string& content) {
  if (!writes_) return;
  const fs::path file = path() / name;
  if (!is_reached_without_links(path(), name)) {
    throw UsageError("cannot write " + file.string() + ": a folder on the way is a symbolic link or a file");
  }
  const fs::file_type present = type_of(file);
  if (present == fs::file_type::directory) throw UsageError("cannot write " + file.string() + ": it is a folder");
  if (present != fs::file_type::not_found && !run_.overwrite) {
    const auto listed = files_.find(name);
    if (listed == files_.end()) refuse(path(), name, kForeign);
    if (!is_file_with(listed->second, file)) refuse(path(), name, kChanged);
  }
  // This lock creates the file's folder, and keeps it while the files of the earlier run are removed.
  std::optional<FolderLock> parent;
  if (fs::path(name).has_parent_path()) parent.emplace(file.parent_path());
  UnfinishedFile unfinished(file, content, path());
  const std::set<std::string> hash = {hash_text(content)};
  list(name, hash);
  unfinished.finish();
  files_[name] = hash;  // config.json has it when the next file is listed
}

void OutputFolder::list(const std::string& name, std::set<std::string> hashes) {
  FileList files, removed;
  const bool figures_stay = !begun_ && repeats_earlier_run();
  for (const auto& file : files_) {
    const bool stays = begun_ || (figures_stay && file.first.starts_with(kFigures));
    (stays ? files : removed).insert(file);
  }
  // Until the new content replaces the present one, the file may have either.
  for (const std::string& hash : files[name]) {
    if (is_file_with({hash}, path() / name)) hashes.insert(hash);
  }
  files[name] = std::move(hashes);
  if (begun_ && files == files_) return;

  UnfinishedFile config = new_config(files);
  if (!begun_) {
    refuse_runs_in_use(path());
    remove_listed(path(), removed);
  }
  config.finish();
  files_ = std::move(files);
  begun_ = true;
}

json OutputFolder::description() const {
  json config = line_.config();
  config[kInputsEntry] = inputs_;
  return config;
}

bool OutputFolder::repeats_earlier_run() const {
  if (!earlier_) return false;
  json flags = *earlier_;
  flags.erase(kRunEntry);
  flags.erase(kFilesEntry);
  return flags == description();
}

UnfinishedFile OutputFolder::new_config(const FileList& files) const {
  json config = description();
  config[kRunEntry] = kRunFormat;
  config[kFilesEntry] = files;
  return {path() / kConfig, config.dump(2) + "\n", path()};
}

bool has_written(const fs::path& folder, const std::string& name) {
  const FileList files = listed(read_config(folder));
  const auto found = files.find(name);
  return found != files.end() && is_file_with(found->second, folder / name);
}

}  // namespace lcp::training
