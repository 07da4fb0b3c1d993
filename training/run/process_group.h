// The processes that torchrun starts together, and how they exchange what they have computed.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace lcp::training {

/// How a program uses several processes.
enum class Processes {
  kFirst,    ///< The first does all of the work, and the others end at once.
  kDivided,  ///< All of them take part.
};

/// The group of this process: the processes that torchrun started together, numbered from 0, or this one alone. All of
/// them run the same program on the same data and decide the same; only what takes time is divided among them, and the
/// results are collected on each. The first one writes the files and prints.
///
/// The member functions that are named collective must be called by all processes, in the same order, by one thread of
/// each. They throw where another process has ended. They have no time limit: torchrun ends the others where one fails.
class ProcessGroup {
 public:
  static ProcessGroup& current();

  /// Connects the processes that the environment names (RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT), unless there is
  /// one or the program lets the first do all. Throws a UsageError where the environment is incomplete.
  void join(Processes use);

  /// To be called before the process ends without an error: where it has the store of the group, it waits until the
  /// others need it no longer.
  void leave();

  std::int64_t rank() const { return rank_; }
  std::int64_t size() const { return size_; }  ///< the number of processes among which the work is divided
  bool is_first() const { return rank_ == 0; }

  /// What a user should know of the processes and threads of a run: one line, or "" where there is one process.
  std::string description(std::int64_t threads) const;

  /// The largest of the numbers of all processes. Collective.
  std::int64_t largest(std::int64_t number);

  /// What the first process has, on all. Collective.
  std::string of_first(const std::string& bytes);
  double of_first(double number);

  /// What each process has, in the order of their numbers. Tensors must have one shape and type. Collective.
  std::vector<torch::Tensor> gather(const torch::Tensor& own);
  std::vector<std::string> gather(const std::string& own);

  /// A number that no call of any process has returned: 0, 1, ... for each `count`, a name of what is counted.
  std::int64_t take_number(const std::string& count);

  /// Whether this process is the first to ask: the one that reports the error by which all end.
  bool may_report();

 private:
  ProcessGroup();
  ~ProcessGroup();

  struct Connection;
  std::unique_ptr<Connection> connection_;
  std::int64_t rank_ = 0, size_ = 1, started_ = 1;
  bool serves_ = false;  // whether this process has the store
};

}  // namespace lcp::training
