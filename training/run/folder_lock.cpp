#include "run/folder_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "run/error.h"
#include "run/process_group.h"

namespace lcp::training {
namespace {

namespace fs = std::filesystem;
using Stat = struct stat;

// Opens the folder and locks it. Returns its descriptor, or -1 with errno: EWOULDBLOCK where another process holds the
// lock.
int open_locked(const fs::path& path) {
  while (true) {
    const int descriptor = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (descriptor < 0) return -1;
    if (flock(descriptor, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
      close(descriptor);
      errno = EWOULDBLOCK;
      return -1;
    }
    // Between open and flock another process may have removed the folder. The lock of a removed folder protects
    // nothing.
    Stat locked{}, present{};
    const bool still_there = fstat(descriptor, &locked) == 0 && stat(path.c_str(), &present) == 0 &&
                             locked.st_dev == present.st_dev && locked.st_ino == present.st_ino;
    if (still_there) return descriptor;
    close(descriptor);
  }
}

}  // namespace

FolderLock::FolderLock(fs::path path) : path_(std::move(path)) {
  if (!ProcessGroup::current().is_first()) return;
  do {
    create();
    descriptor_ = open_locked(path_);
  } while (descriptor_ < 0 && errno == ENOENT);  // another process removed it
  if (descriptor_ >= 0) return;
  if (errno == EWOULDBLOCK) throw UsageError("--out " + path_.string() + " is in use by another run");
  throw UsageError("cannot open " + path_.string() + ": " + std::generic_category().message(errno));
}

FolderLock::FolderLock(FolderLock&& other) noexcept
    : path_(std::move(other.path_)),
      created_(std::move(other.created_)),
      descriptor_(std::exchange(other.descriptor_, -1)) {}

FolderLock::~FolderLock() {
  if (descriptor_ < 0) return;
  for (const fs::path& folder : created_) {
    // The lock protects its own folder only; other processes may use those around it.
    if (folder == path_) {
      rmdir(folder.c_str());
    } else {
      remove_empty_folder(folder);
    }
  }
  close(descriptor_);
}

void FolderLock::create() {
  std::error_code error;
  for (fs::path missing = path_; !missing.empty() && !fs::exists(missing, error); missing = missing.parent_path()) {
    if (!error) created_.insert(missing);
  }
  fs::create_directories(path_, error);
  if (error) throw UsageError("cannot create " + path_.string() + ": " + error.message());
}

bool remove_empty_folder(const fs::path& path) {
  const int descriptor = open_locked(path);
  if (descriptor < 0) return false;
  const bool removed = rmdir(path.c_str()) == 0;
  close(descriptor);
  return removed;
}

}  // namespace lcp::training
