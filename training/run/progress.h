// The progress of long work, and an estimate of the time left.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace lcp::training {

/// Shows progress on stderr, which only goes forwards: on a terminal in one line, which is overwritten; elsewhere in at
/// most one line for every tenth of the work.
class Progress {
 public:
  /// unit: what is counted, such as "iteration". first, total: how many are done already, and how many there are in
  /// all. patience: nothing is shown before this time has passed.
  Progress(std::string unit, std::int64_t first, std::int64_t total, bool quiet,
           std::chrono::milliseconds patience = {});
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// done: nothing is shown where it is less than before, as where a search looks at earlier steps again.
  /// figures: further text, such as "loss 1.2e-05".
  void show(std::int64_t done, const std::string& figures);

 private:
  std::string unit_;
  std::int64_t first_, total_;
  bool quiet_, terminal_;
  std::chrono::milliseconds patience_;
  bool shown_ = false;
  std::int64_t reached_ = -1, last_tenth_ = -1;
  std::chrono::steady_clock::time_point start_, last_;
};

}  // namespace lcp::training
