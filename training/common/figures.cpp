#include "common/figures.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <iostream>
#include <string>
#include <system_error>

extern char** environ;

namespace lcp::training {
namespace {

constexpr int kNoMatplotlib = 3;  // as style.py exits

// Runs a command; returns its exit status, or -1 where it cannot be run. `errors` gets its stderr.
int run(std::array<std::string, 3> command, std::string& errors) {
  std::array<char*, 4> argv = {command[0].data(), command[1].data(), command[2].data(), nullptr};
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return -1;
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  pid_t child = 0;
  const int spawned = posix_spawnp(&child, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  std::array<char, 4096> buffer{};
  for (ssize_t count = 0; (count = read(ends[0], buffer.data(), buffer.size())) > 0;) {
    errors.append(buffer.data(), static_cast<std::size_t>(count));
  }
  close(ends[0]);
  if (spawned != 0) return -1;
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

std::string python() {
  if (const char* chosen = std::getenv("TORCHLCP_PYTHON")) return chosen;
  return access(TORCHLCP_PYTHON, X_OK) == 0 ? TORCHLCP_PYTHON : "python3";
}

}  // namespace

bool draw_figures(const std::string& program, const std::filesystem::path& out, bool quiet) {
  std::error_code error;
  const auto binary = std::filesystem::read_symlink("/proc/self/exe", error);
  const auto script = binary.parent_path().parent_path() / "share" / "torchlcp" / "figures" / (program + ".py");
  std::filesystem::remove_all(out / "figures", error);  // an earlier run's are not this one's
  std::string errors;
  const int status = run({python(), script.string(), out.string()}, errors);
  while (!errors.empty() && errors.back() == '\n') errors.pop_back();
  const std::string reason = errors.substr(errors.rfind('\n') + 1);
  if (status == 0) {
    if (!quiet && !reason.empty()) std::cerr << reason << std::endl;  // what it had to do instead
    return true;
  }
  if (!quiet) {
    std::cerr << "no figures: " << (reason.empty() ? "cannot run " + python() : reason) << "\nto draw them: ";
    if (status == kNoMatplotlib || status < 0) std::cerr << python() << " -m pip install matplotlib && ";
    std::cerr << python() << " " << script.string() << " " << out.string() << std::endl;
  }
  return false;
}

}  // namespace lcp::training
