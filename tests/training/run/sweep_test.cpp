#include "run/sweep.h"

#include <gtest/gtest.h>
#include <torch/types.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "run/error.h"
#include "run/trainer.h"

namespace lcp::training::sweep_test {

namespace fs = std::filesystem;

class SweepTest : public ::testing::Test {
 protected:
  SweepTest() : folder_(fs::temp_directory_path() / ("torchlcp_sweep_test_" + std::to_string(::getpid()))) {}
  ~SweepTest() override { fs::remove_all(folder_); }

  // Does 9 tasks, which return their numbers, and gets a signal during one of them. Returns the status.
  std::optional<int> run(bool resuming, std::int64_t interrupted = -1, std::int64_t data = 1) {
    CommandLine line("study_noise", "What it does.");
    RunFlags flags;
    flags.add_to(line);
    flags.out = folder_;
    flags.quiet = true;
    FolderLock lock(flags.out);
    const std::optional<Checkpoint> checkpoint = resume(line, lock, resuming);
    OutputFolder out(line, flags, std::move(lock));
    if (checkpoint) out.continue_earlier_run();
    Sweep sweep(out, flags, checkpoint, data);
    done_.clear();
    const auto status = sweep.run(9, "task", [&](std::int64_t k) {
      done_.insert(k);
      if (k == interrupted) std::raise(SIGTERM);
      return Checkpoint{{{"number", k}}, {{"x", torch::full({2}, k, torch::kLong)}}};
    });
    for (const auto& [k, result] : sweep.results()) {
      EXPECT_EQ(result.state.at("number"), k);
      EXPECT_TRUE((result.tensors.at("x") == k).all().item<bool>());
    }
    found_ = sweep.results().size();
    return status;
  }

  fs::path folder_;
  std::set<std::int64_t> done_;  // tasks of the last run
  std::size_t found_ = 0;        // results after it
};

TEST_F(SweepTest, DoesWhatIsMissing) {
  EXPECT_EQ(run(false, 3), 128 + SIGTERM);
  EXPECT_EQ(done_, (std::set<std::int64_t>{0, 1, 2, 3}));
  EXPECT_EQ(found_, 4);
  EXPECT_EQ(run(true, 6), 128 + SIGTERM);
  EXPECT_EQ(done_, (std::set<std::int64_t>{4, 5, 6}));
  EXPECT_EQ(run(true), std::nullopt);
  EXPECT_EQ(done_, (std::set<std::int64_t>{7, 8}));
  EXPECT_EQ(found_, 9);
  EXPECT_EQ(run(true), std::nullopt);
  EXPECT_TRUE(done_.empty());
  EXPECT_EQ(run(false), std::nullopt);
  EXPECT_EQ(done_.size(), 9);
}

TEST_F(SweepTest, RefusesTheResultsOfOtherData) {
  run(false);
  EXPECT_THROW(run(true, -1, 2), UsageError);
}

}  // namespace lcp::training::sweep_test
