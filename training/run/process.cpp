#include "run/process.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <system_error>

extern char** environ;

namespace lcp::training {
namespace {

constexpr int kMillisecondsBetweenLooks = 100;  // at the interrupt

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> all;
  for (std::string& text : texts) all.push_back(text.data());
  return all;
}

// What the child writes to its stderr until it has closed it.
std::string listen(int stream, pid_t child, const Interrupt* interrupt) {
  std::string text;
  std::array<char, 4096> buffer{};
  bool passed_on = false;
  while (true) {
    if (interrupt && !passed_on && interrupt->signal() != 0) {
      kill(child, interrupt->signal());
      passed_on = true;
    }
    pollfd events{stream, POLLIN, 0};
    const int ready = poll(&events, 1, interrupt && !passed_on ? kMillisecondsBetweenLooks : -1);
    if (ready == 0 || (ready < 0 && errno == EINTR)) continue;
    const ssize_t count = read(stream, buffer.data(), buffer.size());
    if (count <= 0) return text;
    text.append(buffer.data(), static_cast<std::size_t>(count));
  }
}

}  // namespace

std::filesystem::path program_folder() {
  std::error_code error;
  return std::filesystem::read_symlink("/proc/self/exe", error).parent_path();
}

std::string ProcessResult::last_error() const {
  const std::string text = errors.substr(0, errors.find_last_not_of('\n') + 1);
  return text.substr(text.rfind('\n') + 1);
}

ProcessResult run_process(const std::vector<std::string>& command, const std::vector<std::string>& environment,
                          const Interrupt* interrupt) {
  std::vector<std::string> own_command = command, own_environment = environment;
  std::vector<char*> argv = pointers(own_command), variables = pointers(own_environment);
  argv.push_back(nullptr);
  for (char** variable = environ; *variable; ++variable) variables.push_back(*variable);  // the first of a name counts
  variables.push_back(nullptr);

  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return {-1, ""};
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  if (interrupt) posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  pid_t child = 0;
  const int spawned = posix_spawnp(&child, argv[0], &actions, &attributes, argv.data(), variables.data());
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  ProcessResult result{-1, ""};
  if (spawned == 0) {
    result.errors = listen(ends[0], child, interrupt);
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    result.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  close(ends[0]);
  return result;
}

}  // namespace lcp::training
