#include "run/process_group.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <torch/types.h>
#include <unistd.h>

#include <cstdlib>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "run/error.h"
#include "run/tasks.h"

namespace lcp::training::process_group_test {

using Environment = std::vector<std::pair<const char*, std::string>>;

// A port of this machine that nobody listens to.
std::string free_port() {
  const int one = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  socklen_t size = sizeof address;
  EXPECT_EQ(bind(one, reinterpret_cast<const sockaddr*>(&address), size), 0);
  getsockname(one, reinterpret_cast<sockaddr*>(&address), &size);
  close(one);
  return std::to_string(ntohs(address.sin_port));
}

// Runs the function in processes of their own, and returns how many of them it returned true in.
int in_processes(int count, const std::function<bool(ProcessGroup& group)>& function) {
  const std::string port = free_port();
  std::vector<pid_t> children;
  for (int k = 0; k < count; ++k) {
    const pid_t child = fork();
    if (child == 0) {
      const Environment environment = {{"RANK", std::to_string(k)},
                                       {"WORLD_SIZE", std::to_string(count)},
                                       {"MASTER_ADDR", "127.0.0.1"},
                                       {"MASTER_PORT", port}};
      for (const auto& [name, value] : environment) setenv(name, value.c_str(), 1);
      bool holds = false;
      try {
        ProcessGroup& group = ProcessGroup::current();
        group.join(Processes::kDivided);
        holds = function(group);
        group.leave();
      } catch (const std::exception&) {
      }
      _exit(holds ? 0 : 1);
    }
    children.push_back(child);
  }
  int held = 0;
  for (const pid_t child : children) {
    int status = 0;
    waitpid(child, &status, 0);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) ++held;
  }
  return held;
}

TEST(ProcessGroupTest, IsThisProcessAloneWithoutTorchrun) {
  ProcessGroup& group = ProcessGroup::current();
  group.join(Processes::kDivided);
  EXPECT_EQ(group.size(), 1);
  EXPECT_TRUE(group.is_first());
  EXPECT_EQ(group.description(4), "");
  EXPECT_EQ(group.largest(-3), -3);
  EXPECT_EQ(group.of_first("text"), "text");
  EXPECT_EQ(group.of_first(0.1), 0.1);
  EXPECT_EQ(group.gather("text"), std::vector<std::string>{"text"});
  const std::int64_t first = group.take_number("test");
  EXPECT_EQ(group.take_number("test"), first + 1);
  EXPECT_TRUE(group.may_report());
}

TEST(ProcessGroupTest, ExchangesWhatTheProcessesHave) {
  EXPECT_EQ(
      3, in_processes(3, [](ProcessGroup& group) {
        const std::string own(static_cast<std::size_t>(1000 * group.rank()), static_cast<char>('a' + group.rank()));
        const std::vector<std::string> all = group.gather(own);
        const std::vector<torch::Tensor> tensors =
            group.gather(torch::full({2, 3}, 0.1 * static_cast<double>(group.rank()), torch::kDouble));
        bool holds = group.size() == 3 && all.size() == 3 && tensors.size() == 3;
        for (std::size_t k = 0; holds && k < 3; ++k) {
          holds = all[k] == std::string(1000 * k, static_cast<char>('a' + k)) &&
                  (tensors[k] == 0.1 * static_cast<double>(k)).all().item<bool>();
        }
        const std::string text = std::to_string(group.rank());
        return holds && group.largest(-group.rank()) == 0 && group.of_first(text) == "0" &&
               group.of_first(std::string()).empty() && group.of_first(0.1 + static_cast<double>(group.rank())) == 0.1;
      }));
}

// Contents of more than 4 MiB are exchanged in pieces.
TEST(ProcessGroupTest, ExchangesContentsOfAnyLength) {
  EXPECT_EQ(2, in_processes(2, [](ProcessGroup& group) {
              const auto content = [](std::int64_t k) {
                std::string text(static_cast<std::size_t>(k == 0 ? 8 << 20 : 9'000'001), 'a');
                for (std::size_t i = 0; i < text.size(); i += 1000) text[i] = static_cast<char>(i / 1000 % 251);
                return text;
              };
              bool holds = true;
              for (int repeat = 0; repeat < 3; ++repeat) {
                holds = holds && group.gather(content(group.rank())) == std::vector{content(0), content(1)};
              }
              return holds;
            }));
}

TEST(ProcessGroupTest, OneOfTheProcessesReports) {
  EXPECT_EQ(1, in_processes(3, [](ProcessGroup& group) {
              const bool reports = group.may_report();
              group.largest(0);
              return reports;
            }));
}

TEST(ProcessGroupTest, ThrowsWhereAnotherProcessHasEnded) {
  EXPECT_EQ(2, in_processes(3, [](ProcessGroup& group) {
              group.largest(0);
              if (group.rank() == 1) return false;
              try {
                while (true) group.largest(0);
              } catch (const std::runtime_error& error) {
                return std::string(error.what()) == "another process of the run has ended";
              }
            }));
}

TEST(ProcessGroupTest, DealsEachTaskToOneProcess) {
  EXPECT_EQ(2, in_processes(2, [](ProcessGroup& group) {
              std::set<std::int64_t> own;
              const auto all = divide_tasks(21, 1, [&](std::int64_t k) {
                own.insert(k);
                return Checkpoint{{{"number", k}}, {{"x", torch::full({2}, k, torch::kDouble)}}};
              });
              bool holds = all.size() == 21;
              for (std::int64_t k = 0; holds && k < 21; ++k) {
                const Checkpoint& one = all[static_cast<std::size_t>(k)];
                holds = one.state.at("number") == k && (one.tensors.at("x") == k).all().item<bool>();
              }
              std::int64_t sum = 0;
              for (const torch::Tensor& count : group.gather(torch::tensor({static_cast<std::int64_t>(own.size())}))) {
                sum += count.item<std::int64_t>();
              }
              return holds && sum == 21;
            }));
}

TEST(ProcessGroupTest, NamesWhatIsWrongInTheEnvironment) {
  const auto error_of = [](const Environment& environment) {
    for (const auto& [name, value] : environment) setenv(name, value.c_str(), 1);
    std::string message;
    try {
      ProcessGroup::current().join(Processes::kDivided);
    } catch (const UsageError& error) {
      message = error.what();
    }
    for (const auto& [name, value] : environment) unsetenv(name);
    return message;
  };
  EXPECT_EQ(error_of({{"WORLD_SIZE", "x"}}),
            "WORLD_SIZE of the environment must be a number from 1 to 1048576; got \"x\"");
  EXPECT_EQ(error_of({{"WORLD_SIZE", "2"}}), "the environment has WORLD_SIZE but not RANK; torchrun sets both");
  EXPECT_EQ(error_of({{"WORLD_SIZE", "2"}, {"RANK", "2"}}),
            "RANK of the environment must be a number from 0 to 1; got \"2\"");
  EXPECT_EQ(error_of({{"WORLD_SIZE", "1"}, {"RANK", "0"}}), "");  // this process alone again
}

}  // namespace lcp::training::process_group_test
