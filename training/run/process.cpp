#include "run/process.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <system_error>

namespace lcp::training {
namespace {

constexpr int kInterruptPollMilliseconds = 100;  // how often `listen` looks for a signal

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> all;
  all.reserve(texts.size() + 1);  // callers append the null pointer that ends a list of arguments
  for (std::string& text : texts) all.push_back(text.data());
  return all;
}

// Turns the child of a fork into the program. Only async-signal-safe functions may be called here. If this fails, a
// byte is written to the pipe `failure`; if it succeeds, execvpe closes the pipe.
[[noreturn]] void start(char** argv, char** environment, int errors, int failure, pid_t parent, bool own_group) {
  if (own_group) setpgid(0, 0);
  // The program gets SIGTERM when its parent dies. If the parent has died already, getppid() is another process.
  const bool parent_lives = prctl(PR_SET_PDEATHSIG, SIGTERM) == 0 && getppid() == parent;
  const int dev_null = open("/dev/null", O_WRONLY | O_CLOEXEC);
  if (parent_lives && dev_null >= 0 && dup2(dev_null, STDOUT_FILENO) >= 0 && dup2(errors, STDERR_FILENO) >= 0) {
    execvpe(argv[0], argv, environment);
  }
  const ssize_t ignored = write(failure, "", 1);
  static_cast<void>(ignored);
  _exit(1);
}

// Waits until the child has become the program, or has failed to. Before that the child still has the signal handlers
// of its parent, so that no signal may be passed on to it.
bool has_started(int failure) {
  char byte = 0;
  ssize_t count = 0;
  while ((count = ::read(failure, &byte, 1)) < 0 && errno == EINTR) {
  }
  return count == 0;
}

// Returns what the child writes to its stderr. Meanwhile passes on the signal that `interrupt` receives.
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
    const int ready = poll(&events, 1, interrupt && !passed_on ? kInterruptPollMilliseconds : -1);
    if (ready == 0 || (ready < 0 && errno == EINTR)) continue;
    const ssize_t count = ::read(stream, buffer.data(), buffer.size());
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
  own_environment.emplace_back("WORLD_SIZE=");  // of torchrun
  std::vector<char*> argv = pointers(own_command), variables = pointers(own_environment);
  argv.push_back(nullptr);
  for (char** variable = environ; *variable; ++variable)
    variables.push_back(*variable);  // getenv finds the first variable of a name
  variables.push_back(nullptr);

  std::array<int, 2> errors{}, failure{};
  if (pipe2(errors.data(), O_CLOEXEC) != 0) return {-1, ""};
  if (pipe2(failure.data(), O_CLOEXEC) != 0) {
    for (const int end : errors) close(end);
    return {-1, ""};
  }
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child == 0) start(argv.data(), variables.data(), errors[1], failure[1], parent, interrupt != nullptr);
  close(errors[1]);
  close(failure[1]);
  ProcessResult result{-1, ""};
  if (child > 0) {
    const bool started = has_started(failure[0]);
    if (started) result.errors = listen(errors[0], child, interrupt);
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    if (started) result.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  close(errors[0]);
  close(failure[0]);
  return result;
}

}  // namespace lcp::training
