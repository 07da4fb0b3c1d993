#include "run/output_folder.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <memory>

#include "run/error.h"

namespace lcp::training {
namespace {

namespace fs = std::filesystem;

class OutputFolderTest : public ::testing::Test {
 protected:
  OutputFolderTest() {
    folder_ = fs::temp_directory_path() / ("torchlcp_output_test_" + std::to_string(::getpid()));
    fs::create_directories(folder_);
    out_ = folder_ / "out";
  }
  ~OutputFolderTest() override { fs::remove_all(folder_); }

  // A run with this seed, its flags and its folder.
  struct Run {
    Run(const fs::path& out, std::int64_t seed, bool overwrite) : line("program", "What it does.") {
      flags.add_to(line);
      flags.out = out;
      flags.seed = seed;
      flags.overwrite = overwrite;
      folder = std::make_unique<OutputFolder>(line, flags);
    }
    OutputFolder* operator->() { return folder.get(); }

    CommandLine line;
    RunFlags flags;
    std::unique_ptr<OutputFolder> folder;
  };

  std::unique_ptr<Run> open(std::int64_t seed = 0, bool overwrite = false) {
    return std::make_unique<Run>(out_, seed, overwrite);
  }

  std::string error_of(bool overwrite = false) {
    try {
      open(0, overwrite);
    } catch (const UsageError& error) {
      std::string text = error.what();
      const std::string out = out_.string();
      if (const auto at = text.find(out); at != std::string::npos) text.replace(at, out.size(), "out");
      return text;
    }
    return "no error";
  }

  void put(const fs::path& path, const std::string& content) {
    fs::create_directories(path.parent_path());
    std::ofstream(path) << content;
  }

  static std::string content(const fs::path& path) { return fs::exists(path) ? read_file(path) : "nothing"; }

  std::set<std::string> files() const {
    std::set<std::string> names;
    for (const auto& entry : fs::recursive_directory_iterator(out_)) {
      if (!entry.is_directory()) names.insert(entry.path().lexically_relative(out_).string());
    }
    return names;
  }

  fs::path folder_, out_;
};

constexpr const char* kRefusal =
    "--out out holds notes.txt, which no run of this version wrote; choose another folder, or add --overwrite";

TEST_F(OutputFolderTest, ListsEveryFileOfTheRun) {
  (*open())->write("figures/a.png", "picture");
  const auto config = read_json(out_ / "config.json");
  EXPECT_EQ(config["files"], nlohmann::json({"figures/a.png"}));
  EXPECT_EQ(config["program"], "program");
  EXPECT_EQ(content(out_ / "figures" / "a.png"), "picture");
}

TEST_F(OutputFolderTest, LeavesNoTraceWhereNothingIsWritten) {
  out_ /= "inner";
  open();
  EXPECT_FALSE(fs::exists(out_.parent_path()));
  out_ = folder_;
  open();
  EXPECT_TRUE(fs::exists(folder_));
}

TEST_F(OutputFolderTest, RefusesAFileThatNoRunWrote) {
  put(out_ / "notes.txt", "mine");
  EXPECT_EQ(error_of(), kRefusal);
  EXPECT_EQ(content(out_ / "notes.txt"), "mine");
  (*open(0, true))->write("data.csv", "x");
  EXPECT_EQ(files(), (std::set<std::string>{"config.json", "data.csv", "notes.txt"}));
  EXPECT_EQ(error_of(), kRefusal);  // still
}

TEST_F(OutputFolderTest, RefusesAFileThatWasAddedToARun) {
  (*open())->write("data.csv", "x");
  put(out_ / "figures" / "mine.png", "mine");
  EXPECT_NE(error_of().find("holds figures/mine.png, which no run"), std::string::npos);
}

TEST_F(OutputFolderTest, RefusesLinks) {
  put(folder_ / "victim", "precious");
  fs::create_directories(out_);
  fs::create_symlink(folder_ / "victim", out_ / "data.csv");
  EXPECT_NE(error_of().find("holds data.csv, which no run"), std::string::npos);
  (*open(0, true))->write("data.csv", "x");
  EXPECT_EQ(content(folder_ / "victim"), "precious");
  EXPECT_EQ(content(out_ / "data.csv"), "x");

  fs::create_directories(folder_ / "pictures");
  put(folder_ / "pictures" / "a.png", "precious");
  fs::create_directory_symlink(folder_ / "pictures", out_ / "figures");
  EXPECT_NE(error_of().find("holds figures, which no run"), std::string::npos);
  EXPECT_THROW((*open(0, true))->write("figures/a.png", "x"), UsageError);
  EXPECT_EQ(content(folder_ / "pictures" / "a.png"), "precious");
}

TEST_F(OutputFolderTest, NeverFollowsALinkInThePlaceOfAnUnfinishedFile) {
  put(folder_ / "victim", "precious");
  fs::create_directories(out_);
  for (const char* name : {"config.json.tmp", "data.csv.tmp"}) fs::create_symlink(folder_ / "victim", out_ / name);
  for (int k = 0; k < 100; ++k) {
    const std::string name = kUnfinishedPrefix + std::to_string(::getpid()) + "-" + std::to_string(k);
    fs::create_symlink(folder_ / "victim", out_ / name);
  }
  (*open(0, true))->write("data.csv", "x");
  EXPECT_EQ(content(folder_ / "victim"), "precious");
}

TEST_F(OutputFolderTest, RemovesOnlyWhatTheEarlierRunListed) {
  (*open(1))->write("metrics.json", "old");
  put(out_ / "notes.txt", "mine");
  put(folder_ / "victim", "precious");
  auto config = read_json(out_ / "config.json");
  config["files"] = {"metrics.json", "../victim"};  // as somebody else may have written it
  put(out_ / "config.json", config.dump());
  EXPECT_THROW(open(), UsageError);
  (*open(2, true))->write("data.csv", "x");
  EXPECT_EQ(content(folder_ / "victim"), "precious");
  EXPECT_EQ(content(out_ / "notes.txt"), "mine");
}

TEST_F(OutputFolderTest, KeepsTheEarlierRunUntilTheFirstFileOfTheNext) {
  (*open(1))->write("metrics.json", "old");
  (*open(1))->write("model.pt", "old");
  const auto next = open(2);
  EXPECT_TRUE((*next)->has_earlier_run());
  EXPECT_EQ(content(out_ / "model.pt"), "old");
  (*next)->write("checkpoint.pt", "new");
  EXPECT_EQ(files(), (std::set<std::string>{"config.json", "checkpoint.pt"}));
  EXPECT_EQ(read_json(out_ / "config.json")["seed"], 2);
}

TEST_F(OutputFolderTest, KeepsTheFilesOfARunThatIsContinued) {
  (*open(1))->write("checkpoint.pt", "old");
  const auto next = open(1);
  (*next)->continue_earlier_run();
  (*next)->write("history.csv", "new");
  EXPECT_EQ(files(), (std::set<std::string>{"config.json", "checkpoint.pt", "history.csv"}));
  EXPECT_EQ(read_json(out_ / "config.json")["files"], nlohmann::json({"checkpoint.pt", "history.csv"}));
}

TEST_F(OutputFolderTest, KeepsFiguresOfTheSameFlagsUntilTheyAreDrawnAgain) {
  (*open(1))->write("figures/a.png", "picture");
  (*open(1))->write("data.csv", "x");
  EXPECT_EQ(content(out_ / "figures" / "a.png"), "picture");
  (*open(2))->write("data.csv", "x");
  EXPECT_EQ(files(), (std::set<std::string>{"config.json", "data.csv"}));
  EXPECT_FALSE(fs::exists(out_ / "figures"));
}

TEST_F(OutputFolderTest, JudgesRunsInsideByTheirOwnLists) {
  const fs::path outer = out_;
  (*open(1))->announce({"runs/one/"});
  out_ = outer / "runs" / "one";
  (*open(5))->write("metrics.json", "inner");
  out_ = outer;
  EXPECT_EQ(error_of(), "no error");
  put(outer / "runs" / "one" / "mine", "mine");
  EXPECT_NE(error_of().find("holds runs/one/mine, which no run"), std::string::npos);
  fs::remove(outer / "runs" / "one" / "mine");
  (*open(2))->write("data.csv", "x");
  EXPECT_EQ(files(), (std::set<std::string>{"config.json", "data.csv"}));
}

TEST_F(OutputFolderTest, IsLockedByTheRunThatUsesIt) {
  const auto run = open();
  (*run)->write("data.csv", "x");
  EXPECT_EQ(error_of(), "--out out is in use by another run");
  EXPECT_EQ(error_of(true), "--out out is in use by another run");
}

TEST_F(OutputFolderTest, RemovesUnfinishedFilesOfKilledRuns) {
  (*open())->write("figures/a.png", "picture");
  for (const fs::path& folder : {out_, out_ / "figures"})
    put(folder / (kUnfinishedPrefix + std::string("7-0")), "half");
  open();
  EXPECT_EQ(files(), (std::set<std::string>{"config.json", "figures/a.png"}));
}

TEST_F(OutputFolderTest, NamesTheFileThatDoesNotFitOnTheDisk) {
  (*open())->write("data.csv", "old");
  std::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const rlimit limited{1000, before.rlim_max};
  setrlimit(RLIMIT_FSIZE, &limited);
  std::string message;
  try {
    (*open())->write("data.csv", std::string(2000, 'x'));
  } catch (const UsageError& error) {
    message = error.what();
  }
  setrlimit(RLIMIT_FSIZE, &before);
  EXPECT_EQ(message, "cannot write " + (out_ / "data.csv").string() + ": File too large");
  EXPECT_EQ(files(), (std::set<std::string>{"config.json"}));
}

TEST_F(OutputFolderTest, NamesAFolderThatCannotBe) {
  put(folder_ / "file", "");
  out_ = folder_ / "file" / "out";
  EXPECT_NE(error_of().find("cannot create out: "), std::string::npos);
}

}  // namespace
}  // namespace lcp::training
