// Drake's solvers of LCPs, by its Python package, whose wheels have no C++ headers: drake_process.py reads the problems
// from a file and answers through a pipe.
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <utility>

#include "peers.h"

namespace lcp::bench {
namespace {

class Drake : public Peer {
 public:
  Drake(const std::vector<testing::Problem>& problems, std::string python, std::string solver)
      : problems_(problems),
        path_(std::filesystem::temp_directory_path() / ("problems_" + std::to_string(getpid()))),
        python_(std::move(python)),
        solver_(std::move(solver)) {
    std::ofstream file(path_, std::ios::binary);
    const auto write = [&](const auto* data, std::int64_t count) {
      file.write(reinterpret_cast<const char*>(data), static_cast<std::streamsize>(count * sizeof *data));
    };
    for (const testing::Problem& problem : problems) {
      const std::int64_t n = problem.n();
      write(&n, 1);
      write(problem.M.data(), problem.M.size());
      write(problem.q.data(), problem.q.size());
    }
  }
  ~Drake() override {
    stop();
    std::filesystem::remove(path_);
  }
  Drake(const Drake&) = delete;
  Drake& operator=(const Drake&) = delete;

  bool solve(std::size_t k, double* z) override {
    if (answers_ == nullptr || k != next_) start(k);
    next_ = k + 1;
    double claims = 0;
    const auto n = static_cast<std::size_t>(problems_[k].n());
    if (std::fread(&claims, sizeof claims, 1, answers_) == 1 && std::fread(z, sizeof *z, n, answers_) == n) {
      return claims == 1;
    }
    std::abort();  // as Drake did
  }

 private:
  void start(std::size_t first) {
    stop();
    int ends[2];
    posix_spawn_file_actions_t actions;
    if (pipe2(ends, O_CLOEXEC) != 0 || posix_spawn_file_actions_init(&actions) != 0) std::abort();
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    const std::string script = std::string(TORCHLCP_BENCH_FOLDER) + "/drake_process.py";
    std::string words[] = {python_, script, solver_, path_.string(), std::to_string(first)};
    char* arguments[] = {words[0].data(), words[1].data(), words[2].data(), words[3].data(), words[4].data(), nullptr};
    if (posix_spawn(&process_, words[0].c_str(), &actions, nullptr, arguments, environ) != 0) std::abort();
    posix_spawn_file_actions_destroy(&actions);
    ::close(ends[1]);
    answers_ = fdopen(ends[0], "r");
  }

  void stop() {
    if (answers_ == nullptr) return;
    std::fclose(answers_);
    waitpid(process_, nullptr, 0);
  }

  const std::vector<testing::Problem>& problems_;
  std::filesystem::path path_;
  std::string python_, solver_;
  pid_t process_ = 0;
  std::FILE* answers_ = nullptr;
  std::size_t next_ = 0;
};

}  // namespace

std::vector<PeerSolver> drake_solvers(const std::string& python) {
  const auto solver = [&](const std::string& name, const std::string& class_name) {
    return PeerSolver{name, false, 1000, [=](const std::vector<testing::Problem>& problems) {
                        return std::make_unique<Drake>(problems, python, class_name);
                      }};
  };
  return {solver("Drake: Lemke", "UnrevisedLemkeSolver"), solver("Drake: Moby", "MobyLcpSolver")};
}

}  // namespace lcp::bench
