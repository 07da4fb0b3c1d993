#include "run/output_folder.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <fstream>
#include <functional>
#include <memory>
#include <sstream>

#include "run/error.h"

namespace lcp::training::output_folder_test {

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
    Run(const fs::path& out, std::int64_t seed, bool overwrite, std::string file)
        : line("simulate", "What it does."), data(std::move(file)) {
      flags.add_to(line);
      line.add<std::string>("data", data, "File", nullptr, Role::kFile);
      flags.out = out;
      flags.seed = seed;
      flags.overwrite = overwrite;
      folder = std::make_unique<OutputFolder>(line, flags);
    }
    OutputFolder* operator->() { return folder.get(); }

    CommandLine line;
    RunFlags flags;
    std::string data;
    std::unique_ptr<OutputFolder> folder;
  };

  std::unique_ptr<Run> open(std::int64_t seed = 0, bool overwrite = false, const std::string& data = "") {
    return std::make_unique<Run>(out_, seed, overwrite, data);
  }

  // A run that writes these files.
  void write(const std::vector<std::string>& names) {
    const auto run = open(1);
    for (const std::string& name : names) (*run)->write(name, "old");
  }

  // The message of the body's UsageError, with "out" for the folder.
  std::string error_of(const std::function<void()>& body) const {
    try {
      body();
    } catch (const UsageError& error) {
      std::string text = error.what();
      const std::string out = out_.string();
      for (auto at = text.find(out); at != std::string::npos; at = text.find(out)) text.replace(at, out.size(), "out");
      return text;
    }
    return "no error";
  }
  std::string error_of(bool overwrite = false) {
    return error_of([&] { open(0, overwrite); });
  }

  // The list of a run that wrote these files with this content, as config.json has it.
  static nlohmann::json list_of(const std::vector<std::string>& names, const std::string& content) {
    std::ostringstream hash;
    hash << std::hex << hash_of(content);
    nlohmann::json list = nlohmann::json::object();
    for (const std::string& name : names) list[name] = {hash.str()};
    return list;
  }

  void put(const fs::path& path, const std::string& content) {
    fs::create_directories(path.parent_path());
    std::ofstream(path) << content;
  }

  // Runs a body while no file may become larger than so many bytes. Returns its error.
  static std::string error_with_room_for(rlim_t bytes, const std::function<void()>& body) {
    std::signal(SIGXFSZ, SIG_IGN);
    rlimit before{};
    getrlimit(RLIMIT_FSIZE, &before);
    const rlimit limited{bytes, before.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limited);
    std::string message = "no error";
    try {
      body();
    } catch (const UsageError& error) {
      message = error.what();
    }
    setrlimit(RLIMIT_FSIZE, &before);
    return message;
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

std::string refusal(const std::string& name, const std::string& why = "no run of this version wrote") {
  return "--out out holds " + name + ", which " + why + "; choose another folder, or add --overwrite";
}
constexpr const char* kChanged = "was changed after a run wrote it";

TEST_F(OutputFolderTest, ListsEveryFileOfTheRun) {
  (*open())->write("figures/a.png", "picture");
  const auto config = read_json(out_ / "config.json");
  EXPECT_EQ(config["files"], list_of({"figures/a.png"}, "picture"));
  EXPECT_EQ(config["program"], "simulate");
  EXPECT_EQ(config["torchlcp_run"], 2);
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
  EXPECT_EQ(error_of(), refusal("notes.txt"));
  EXPECT_EQ(content(out_ / "notes.txt"), "mine");
  (*open(0, true))->write("data.csv", "x");
  EXPECT_EQ(files(), (std::set<std::string>{"config.json", "data.csv", "notes.txt"}));
  EXPECT_EQ(error_of(), refusal("notes.txt"));  // still
}

TEST_F(OutputFolderTest, RefusesAFileThatWasAddedToARun) {
  (*open())->write("data.csv", "x");
  put(out_ / "figures" / "mine.png", "mine");
  EXPECT_NE(error_of().find("holds figures/mine.png, which no run"), std::string::npos);
}

TEST_F(OutputFolderTest, BelievesNoListOfSomebodyElses) {
  const nlohmann::json files = list_of({"thesis.tex", "notes/"}, "mine");
  const std::vector<nlohmann::json> configs = {
      {{"program", "my app"}, {"files", files}},
      {{"program", "simulate"}, {"files", files}},
      {{"program", "my app"}, {"files", files}, {"torchlcp_run", 2}},
      {{"program", "simulate"}, {"files", files}, {"torchlcp_run", 1}},
      {{"program", 1}, {"files", files}, {"torchlcp_run", 2}},
      {{"program", "simulate"}, {"files", "thesis.tex"}, {"torchlcp_run", 2}},
      {{"program", "simulate"}, {"files", {"thesis.tex"}}, {"torchlcp_run", 2}},
      {{"program", "simulate"}, {"files", {{"thesis.tex", 1}}}, {"torchlcp_run", 2}},
      {{"program", "simulate"}, {"torchlcp_run", 2}},
      nlohmann::json::array({"thesis.tex"}),
  };
  for (const nlohmann::json& config : configs) {
    put(out_ / "thesis.tex", "mine");
    put(out_ / "config.json", config.dump());
    EXPECT_NE(error_of().find(", which no run of this version wrote"), std::string::npos) << config;
    EXPECT_EQ(content(out_ / "config.json"), config.dump());
    (*open(0, true))->write("data.csv", "x");
    EXPECT_EQ(this->files(), (std::set<std::string>{"config.json", "data.csv", "thesis.tex"}));
    EXPECT_EQ(content(out_ / "thesis.tex"), "mine");
    fs::remove_all(out_);
  }
}

TEST_F(OutputFolderTest, OverwritesOnlyWhatItWrites) {
  for (const char* name : {"metrics.json", "model.pt", "figures/a.png", "figures/b.png"}) put(out_ / name, "mine");
  const auto run = open(0, true);
  (*run)->write("history.csv", "x");
  EXPECT_EQ(content(out_ / "metrics.json"), "mine");
  EXPECT_FALSE(has_written(out_, "metrics.json"));
  (*run)->write("metrics.json", "results");
  EXPECT_EQ(content(out_ / "metrics.json"), "results");
  EXPECT_TRUE(has_written(out_, "metrics.json"));
  (*run)->write("figures/a.png", "picture");
  EXPECT_EQ(content(out_ / "figures" / "a.png"), "picture");
  for (const char* name : {"model.pt", "figures/b.png"}) EXPECT_EQ(content(out_ / name), "mine");
}

TEST_F(OutputFolderTest, LeavesWhatWasChangedAfterARunWroteIt) {
  write({"data.csv", "metrics.json", "model.pt"});
  put(out_ / "model.pt", "trained further");
  EXPECT_EQ(error_of(), refusal("model.pt", kChanged));
  EXPECT_FALSE(has_written(out_, "model.pt"));
  EXPECT_TRUE(has_written(out_, "data.csv"));
  (*open(2, true))->write("metrics.json", "new");
  EXPECT_EQ(files(), (std::set<std::string>{"config.json", "metrics.json", "model.pt"}));
  EXPECT_EQ(content(out_ / "model.pt"), "trained further");
  EXPECT_EQ(error_of(), refusal("model.pt"));
  (*open(2, true))->write("model.pt", "new");
  EXPECT_EQ(content(out_ / "model.pt"), "new");
}

TEST_F(OutputFolderTest, LeavesWhatIsChangedWhileTheNextRunComputes) {
  write({"data.csv", "metrics.json"});
  const auto next = open(2);
  put(out_ / "data.csv", "measured");
  EXPECT_EQ(error_of([&] { (*next)->write("data.csv", "new"); }), refusal("data.csv", kChanged));
  EXPECT_EQ(content(out_ / "metrics.json"), "old");
  (*next)->write("history.csv", "new");
  EXPECT_EQ(files(), (std::set<std::string>{"config.json", "data.csv", "history.csv"}));
  EXPECT_EQ(content(out_ / "data.csv"), "measured");
}

TEST_F(OutputFolderTest, StopsAtAFileOfTheUsersThatAppearsUnderANameThatItWrites) {
  const auto run = open();
  (*run)->write("data.csv", "x");
  put(out_ / "metrics.json", "mine");
  EXPECT_EQ(error_of([&] { (*run)->write("metrics.json", "results"); }), refusal("metrics.json"));
  put(out_ / "data.csv", "mine");
  EXPECT_EQ(error_of([&] { (*run)->write("data.csv", "y"); }), refusal("data.csv", kChanged));
  for (const char* name : {"metrics.json", "data.csv"}) EXPECT_EQ(content(out_ / name), "mine");
  fs::remove(out_ / "data.csv");
  fs::create_directory(out_ / "data.csv");
  EXPECT_EQ(error_of([&] { (*run)->write("data.csv", "y"); }), "cannot write out/data.csv: it is a folder");
}

TEST_F(OutputFolderTest, ReplacesItsOwnFileAndListsBothContentsMeanwhile) {
  const auto run = open();
  for (const char* text : {"one", "two", "three"}) (*run)->write("checkpoint.pt", text);
  nlohmann::json list = list_of({"checkpoint.pt"}, "two");
  list["checkpoint.pt"].push_back(list_of({"checkpoint.pt"}, "three")["checkpoint.pt"][0]);
  std::sort(list["checkpoint.pt"].begin(), list["checkpoint.pt"].end());
  EXPECT_EQ(read_json(out_ / "config.json")["files"], list);
}

TEST_F(OutputFolderTest, RefusesAnInputInTheFolder) {
  (*open(1))->write("data.csv", "x");
  fs::create_symlink(out_ / "data.csv", folder_ / "link.csv");
  for (const fs::path& input : {out_ / "data.csv", folder_ / "link.csv", out_ / "." / "data.csv"}) {
    for (const bool overwrite : {false, true}) {
      EXPECT_EQ(error_of([&] { open(2, overwrite, input.string()); }).substr(0, 7), "--data ") << input;
    }
  }
  EXPECT_EQ(error_of([&] { open(2, false, (out_ / "data.csv").string()); }),
            "--data out/data.csv is in --out out, where a run replaces files; choose another folder for --out");
  EXPECT_EQ(content(out_ / "data.csv"), "x");
  put(folder_ / "out.csv", "y");
  EXPECT_EQ(error_of([&] { open(2, false, (folder_ / "out.csv").string()); }), "no error");
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
  const std::string present = unfinished_path(out_).string();  // the next ones have the next counts
  const auto count = std::stoi(present.substr(present.rfind('-') + 1));
  for (int k = 1; k <= 9; ++k) {
    fs::create_symlink(folder_ / "victim", present.substr(0, present.rfind('-') + 1) + std::to_string(count + k));
  }
  (*open(0, true))->write("data.csv", "x");
  EXPECT_EQ(content(folder_ / "victim"), "precious");
}

TEST_F(OutputFolderTest, RemovesOnlyWhatTheEarlierRunListed) {
  (*open(1))->write("metrics.json", "old");
  put(out_ / "notes.txt", "mine");
  put(folder_ / "victim", "precious");
  auto config = read_json(out_ / "config.json");
  config["files"] = list_of({"../victim"}, "precious");  // as somebody else may have written it
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
  nlohmann::json list = list_of({"checkpoint.pt"}, "old");
  list.update(list_of({"history.csv"}, "new"));
  EXPECT_EQ(read_json(out_ / "config.json")["files"], list);
}

TEST_F(OutputFolderTest, KeepsFiguresOfTheSameFlagsUntilTheyAreDrawnAgain) {
  (*open(1))->write("figures/a.png", "picture");
  (*open(1))->write("data.csv", "x");
  EXPECT_EQ(content(out_ / "figures" / "a.png"), "picture");
  (*open(2))->write("data.csv", "x");
  EXPECT_EQ(files(), (std::set<std::string>{"config.json", "data.csv"}));
  EXPECT_FALSE(fs::exists(out_ / "figures"));
}

TEST_F(OutputFolderTest, KeepsFiguresOfTheSameInputOnly) {
  const std::string data = (folder_ / "data.csv").string();
  put(data, "x");
  (*open(1, false, data))->write("figures/a.png", "picture");
  (*open(1, false, data))->write("metrics.json", "results");
  EXPECT_EQ(files(), (std::set<std::string>{"config.json", "figures/a.png", "metrics.json"}));
  put(data, "y");
  (*open(1, false, data))->write("metrics.json", "results");
  EXPECT_EQ(files(), (std::set<std::string>{"config.json", "metrics.json"}));
}

TEST_F(OutputFolderTest, JudgesRunsInsideByTheirOwnLists) {
  const fs::path outer = out_;
  (*open(1))->announce("runs/one/");
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

TEST_F(OutputFolderTest, StopsWhereARunInsideIsInUse) {
  const fs::path outer = out_, inner = out_ / "runs" / "one";
  (*open(1))->announce("runs/one/");
  out_ = inner;
  auto other = open(5);
  out_ = outer;
  const std::string in_use = "--out out/runs/one/ is in use by another run";
  EXPECT_EQ(error_of(), in_use);  // before it has written anything
  (*other)->write("model.pt", "model");
  put(inner / ".torchlcp-7-0", "half");
  for (const bool overwrite : {false, true}) EXPECT_EQ(error_of(overwrite), in_use);
  const std::set<std::string> all = {"config.json", "runs/one/.torchlcp-7-0", "runs/one/config.json",
                                     "runs/one/model.pt"};
  EXPECT_EQ(files(), all);
  other.reset();

  const auto next = open(2);
  out_ = inner;
  other = open(5);  // it begins after the next run has looked
  out_ = outer;
  EXPECT_THROW((*next)->write("metrics.json", "new"), UsageError);
  EXPECT_EQ(files(), (std::set<std::string>{"config.json", "runs/one/config.json", "runs/one/model.pt"}));
  other.reset();
  (*next)->write("metrics.json", "new");
  EXPECT_EQ(files(), (std::set<std::string>{"config.json", "metrics.json"}));
}

TEST_F(OutputFolderTest, IsLockedByTheRunThatUsesIt) {
  const auto run = open();
  (*run)->write("data.csv", "x");
  EXPECT_EQ(error_of(), "--out out is in use by another run");
  EXPECT_EQ(error_of(true), "--out out is in use by another run");
}

TEST_F(OutputFolderTest, RemovesWhatKilledRunsLeftUnfinished) {
  (*open())->write("figures/a.png", "picture");
  for (const fs::path& folder : {out_, out_ / "figures"}) put(folder / ".torchlcp-7-0", "half");
  put(out_ / ".torchlcp-7-1" / "a.png", "half");
  open();
  EXPECT_EQ(files(), (std::set<std::string>{"config.json", "figures/a.png"}));
  for (const char* name : {".torchlcp-notes", ".torchlcp-7", ".torchlcp-7-", ".torchlcp-7-0.csv", "a.torchlcp-7-0"}) {
    put(out_ / name, "mine");
    EXPECT_EQ(error_of(), refusal(name));
    open(0, true);
    EXPECT_EQ(content(out_ / name), "mine");
    fs::remove(out_ / name);
  }
}

TEST_F(OutputFolderTest, LeavesTheEarlierRunWhereAFileDoesNotFitOnTheDisk) {
  write({"data.csv", "model.pt"});
  const std::string config = content(out_ / "config.json");
  const auto write = [&](const std::string& text) { (*open(2))->write("inner/data.csv", text); };
  EXPECT_EQ(error_with_room_for(1000, [&] { write(std::string(2000, 'x')); }),
            "cannot write " + (out_ / "inner" / "data.csv").string() + ": File too large");
  EXPECT_EQ(error_with_room_for(20, [&] { write("x"); }),
            "cannot write " + (out_ / "config.json").string() + ": File too large");
  EXPECT_EQ(files(), (std::set<std::string>{"config.json", "data.csv", "model.pt"}));
  EXPECT_EQ(content(out_ / "config.json"), config);
  EXPECT_FALSE(fs::exists(out_ / "inner"));
}

TEST_F(OutputFolderTest, LeavesTheEarlierRunWhereAFlagIsNoText) {
  (*open(1))->write("model.pt", "old");
  const auto next = open(2);
  next->data = "/tmp/\xff.csv";
  EXPECT_THROW((*next)->write("model.pt", "new"), UsageError);
  EXPECT_EQ(files(), (std::set<std::string>{"config.json", "model.pt"}));
  EXPECT_EQ(content(out_ / "model.pt"), "old");
}

TEST_F(OutputFolderTest, NamesAFolderThatCannotBe) {
  put(folder_ / "file", "");
  out_ = folder_ / "file" / "out";
  EXPECT_NE(error_of().find("cannot create out: "), std::string::npos);
}

}  // namespace lcp::training::output_folder_test
