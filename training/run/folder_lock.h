// A folder that one process uses at a time.
#pragma once

#include <filesystem>
#include <functional>
#include <set>

namespace lcp::training {

/// The lock flock(2) of a folder, which ends with its process at the latest. On file systems that have no locks the
/// folder is used without one. Of a group of processes the first one holds the lock for all.
class FolderLock {
 public:
  /// Creates the folder where it is missing, and locks it. Throws a UsageError where that fails, and where another
  /// process holds the lock.
  explicit FolderLock(std::filesystem::path path);

  /// Removes the folders that the constructor created, where they are empty, and unlocks the folder.
  ~FolderLock();
  FolderLock(FolderLock&& other) noexcept;
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  void create();

  std::filesystem::path path_;
  std::set<std::filesystem::path, std::greater<>> created_;  // folders that did not exist before, inner ones first
  int descriptor_ = -1;                                      // file descriptor of the folder, which holds the lock
};

/// Removes the folder if it is empty and no process has locked it. Returns whether it did.
bool remove_empty_folder(const std::filesystem::path& path);

}  // namespace lcp::training
