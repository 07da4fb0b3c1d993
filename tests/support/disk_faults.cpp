// A library for LD_PRELOAD that spoils one of the calls by which a program changes a folder. Its calls are counted
// from 1.
//
//   DISK_FAULT_FOLDER  the folder, an absolute path; the names that the program uses must begin with it
//   DISK_FAULT_CALL    the number of the call to spoil
//   DISK_FAULT_KIND    full: calls that need room on the disk are counted, and the one fails with ENOSPC
//                      names: calls that rename or remove a file are counted, and the one fails with EIO
//                      kill: all of them are counted, and the process ends at the one, with exit status 99
//
// A write that is spoilt has written the first half. Nothing is flushed to the disk, which would take most of the time
// and matters to no process. Programs that the program starts are left alone.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

namespace {

enum class Needs { kRoom, kName, kNothing };

struct Fault {
  std::string folder;
  std::string kind;
  long call = 0;

  Fault() {
    const char* values[] = {std::getenv("DISK_FAULT_FOLDER"), std::getenv("DISK_FAULT_KIND"),
                            std::getenv("DISK_FAULT_CALL")};
    if (!values[0] || !values[1] || !values[2]) return;
    folder = values[0];
    kind = values[1];
    call = std::atol(values[2]);
    unsetenv("LD_PRELOAD");
  }

  bool counts(Needs needs) const {
    return kind == "kill" || (kind == "full" && needs == Needs::kRoom) || (kind == "names" && needs == Needs::kName);
  }
};

// Whether this call must fail. `before` is done first.
template <class Before>
bool spoilt(std::string_view path, Needs needs, const Before& before) {
  static const Fault fault;
  static std::atomic<long> count{0};
  if (fault.folder.empty() || !path.starts_with(fault.folder) || !fault.counts(needs)) return false;
  if (++count != fault.call) return false;
  before();
  if (fault.kind == "kill") _exit(99);
  errno = needs == Needs::kRoom ? ENOSPC : EIO;
  return true;
}

bool spoilt(const char* path, Needs needs) {
  return spoilt(path, needs, [] {});
}

std::string path_of(int file) {
  char path[PATH_MAX];
  const ssize_t length = readlink(("/proc/self/fd/" + std::to_string(file)).c_str(), path, sizeof path);
  return {path, length > 0 ? static_cast<std::size_t>(length) : 0};
}

// The function of the C library that this library stands in for.
template <class F>
F* next(F*, const char* name) {
  return reinterpret_cast<F*>(dlsym(RTLD_NEXT, name));
}

}  // namespace

extern "C" {

int open(const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(rest, mode_t) : 0;
  va_end(rest);
  static auto* const real = next(open, "open");
  if ((flags & O_ACCMODE) != O_RDONLY && spoilt(path, Needs::kRoom)) return -1;
  return real(path, flags, mode);
}

ssize_t write(int file, const void* bytes, size_t size) {
  static auto* const real = next(write, "write");
  const auto first_half = [&] { static_cast<void>(real(file, bytes, size / 2)); };
  return spoilt(path_of(file), Needs::kRoom, first_half) ? -1 : real(file, bytes, size);
}

int fsync(int file) { return spoilt(path_of(file).c_str(), Needs::kRoom) ? -1 : 0; }

int mkdir(const char* path, mode_t mode) {
  static auto* const real = next(mkdir, "mkdir");
  return spoilt(path, Needs::kRoom) ? -1 : real(path, mode);
}

int rename(const char* from, const char* to) {
  static auto* const real = next(rename, "rename");
  return spoilt(to, Needs::kName) ? -1 : real(from, to);
}

int unlink(const char* path) {
  static auto* const real = next(unlink, "unlink");
  return spoilt(path, Needs::kName) ? -1 : real(path);
}

int remove(const char* path) {
  static auto* const real = next(remove, "remove");
  return spoilt(path, Needs::kName) ? -1 : real(path);
}

int rmdir(const char* path) {
  static auto* const real = next(rmdir, "rmdir");
  return spoilt(path, Needs::kNothing) ? -1 : real(path);
}

int unlinkat(int folder, const char* path, int flags) {
  static auto* const real = next(unlinkat, "unlinkat");
  const std::string whole = *path == '/' ? path : path_of(folder) + "/" + path;
  return spoilt(whole.c_str(), Needs::kNothing) ? -1 : real(folder, path, flags);
}
}
