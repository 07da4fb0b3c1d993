#include "run/command_line.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "run/error.h"

namespace lcp::training::command_line_test {

class CommandLineTest : public ::testing::Test {
 protected:
  CommandLineTest() : line_("program", "What it does.") {
    run_.add_to(line_);
    line_.add<double>("mu", mu_, "Friction", nonnegative);
    line_.add<std::vector<double>>("alpha", alpha_, "Weights");
    line_.add<std::string>("data", data_, "File", nullptr, Role::kFile);
    line_.add<std::int64_t>("samples", samples_, "Samples", at_least_one);
    folder_ = std::filesystem::temp_directory_path() / ("torchlcp_flags_test_" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder_);
  }
  ~CommandLineTest() override { std::filesystem::remove_all(folder_); }

  std::string config(const nlohmann::json& json) {
    std::ofstream(folder_ / "config.json") << json;
    return (folder_ / "config.json").string();
  }

  std::string parse(const std::vector<std::string>& arguments) {
    std::vector<const char*> argv = {"program"};
    for (const auto& argument : arguments) argv.push_back(argument.c_str());
    try {
      line_.parse(static_cast<int>(argv.size()), argv.data());
    } catch (const UsageError& error) {
      return error.what();
    }
    return "";
  }

  CommandLine line_;
  RunFlags run_;
  double mu_ = 0.3;
  std::vector<double> alpha_ = {1, 2};
  std::string data_;
  std::int64_t samples_ = 9;
  std::filesystem::path folder_;
};

TEST_F(CommandLineTest, TakesFlagsFromTheLineThenTheConfigThenTheDefaults) {
  const auto file = config({{"program", "program"}, {"mu", 0.7}, {"seed", 5}, {"alpha", {3, 4, 5}}});
  EXPECT_EQ(parse({"--config", file, "--mu", "0.9"}), "");
  EXPECT_EQ(mu_, 0.9);
  EXPECT_EQ(run_.seed, 5);
  EXPECT_EQ(alpha_, (std::vector<double>{3, 4, 5}));
  EXPECT_EQ(run_.dtype, "float64");
  EXPECT_TRUE(line_.given("mu"));
  EXPECT_FALSE(line_.given("seed"));  // not on the command line
}

TEST_F(CommandLineTest, WritesAConfigThatRepeatsTheRun) {
  EXPECT_EQ(parse({"--mu", "0.1", "--alpha", "7", "8", "9", "--seed", "2"}), "");
  const auto written = line_.config();
  EXPECT_EQ(written, (nlohmann::json{{"program", "program"},
                                     {"mu", 0.1},
                                     {"alpha", {7., 8., 9.}},
                                     {"data", nullptr},
                                     {"samples", 9},
                                     {"seed", 2},
                                     {"dtype", "float64"},
                                     {"threads", 1}}));
}

TEST_F(CommandLineTest, NamesTheFlagThatIsWrong) {
  EXPECT_NE(parse({"--mu", "x"}).find("--mu"), std::string::npos);
  EXPECT_NE(parse({"--seed", "1.5"}).find("--seed"), std::string::npos);
  EXPECT_NE(parse({"--mu"}).find("--mu"), std::string::npos);
  EXPECT_NE(parse({"--nu", "1"}).find("--nu"), std::string::npos);
}

TEST_F(CommandLineTest, SaysWhatANumberMayBe) {
  EXPECT_EQ(parse({"--mu", "-1"}), "--mu must be finite and >= 0; got -1.0");
}

TEST_F(CommandLineTest, RefusesWhatIsNoNumber) {
  EXPECT_EQ(parse({"--mu", "nan"}), "--mu must be finite and >= 0; got nan");
}

TEST_F(CommandLineTest, RefusesAnEmptyValue) {
  EXPECT_EQ(parse({"--config", config({{"data", nullptr}})}), "");  // as a config says that there is none
  EXPECT_EQ(data_, "");
  for (const char* flag : {"--mu", "--seed", "--dtype", "--data", "--config", "--alpha"}) {
    EXPECT_EQ(parse({flag, ""}), std::string(flag) + " must not be empty");
  }
  EXPECT_EQ(parse({"--alpha", "1", ""}), "--alpha must not be empty");
  EXPECT_EQ(parse({"--mu="}), "--mu must not be empty");
  EXPECT_NE(parse({"--config", config({{"data", ""}})}).find("\"data\" cannot be \"\""), std::string::npos);
  EXPECT_NE(parse({"--config", config({{"mu", ""}})}).find("\"mu\" cannot be \"\""), std::string::npos);
  EXPECT_EQ(parse({"--out", ""}), "--out must not be empty");
}

TEST_F(CommandLineTest, RefusesTextThatIsNotUtf8) {
  EXPECT_EQ(parse({"--data", "/tmp/\xc3\xa4.csv"}), "");
  for (const char* flag : {"--data", "--dtype", "--out"}) {
    EXPECT_EQ(parse({flag, "/tmp/\xff.csv"}), std::string(flag) + " must be UTF-8 text");
  }
}

TEST_F(CommandLineTest, RefusesACountThatOverflows) {
  EXPECT_EQ(parse({"--samples", "1000000000"}), "");
  for (const char* count : {"9223372036854775807", "9223372036854775808", "18446744073709551617", "1e30", "1000000001",
                            "-9223372036854775809", "99999999999999999999999999"}) {
    EXPECT_NE(parse({"--samples", count}).find("--samples"), std::string::npos) << count;
  }
  EXPECT_NE(parse({"--config", config({{"samples", 9223372036854775807}})}).find("--samples must be <= 1000000000"),
            std::string::npos);
  EXPECT_NE(parse({"--mu", "1e999"}).find("--mu"), std::string::npos);
}

TEST_F(CommandLineTest, RefusesASeedThatWouldBeCutOff) {
  for (const char* seed : {"-1", "4294967296", "99999999999999999999"}) {
    EXPECT_NE(parse({"--seed", seed}).find("--seed"), std::string::npos) << seed;
  }
}

TEST_F(CommandLineTest, SaysWhatACountMayBe) {
  EXPECT_EQ(parse({"--threads", "0"}), "--threads must be from 1 to 256; got 0");
}

TEST_F(CommandLineTest, SaysWhatANameMayBe) {
  EXPECT_EQ(parse({"--dtype", "float16"}), "--dtype must be float32 or float64; got \"float16\"");
}

TEST_F(CommandLineTest, NamesTheConfigThatIsWrong) {
  EXPECT_NE(parse({"--config", (folder_ / "none.json").string()}).find("none.json"), std::string::npos);
  EXPECT_NE(parse({"--config", config({{"nu", 1}})}).find("unknown flag \"nu\""), std::string::npos);
  EXPECT_NE(parse({"--config", config({{"mu", "x"}})}).find("\"mu\" cannot be \"x\""), std::string::npos);
  EXPECT_NE(parse({"--config", config({{"seed", 1.5}})}).find("\"seed\" cannot be 1.5"), std::string::npos);
  EXPECT_NE(parse({"--config", config({{"seed", 18446744073709551615u}})}).find("\"seed\" cannot be"),
            std::string::npos);
  EXPECT_NE(parse({"--config", config({{"mu", -1}})}).find("--mu must be"), std::string::npos);
  EXPECT_NE(parse({"--config", config({{"program", "other"}})}).find("\"other\""), std::string::npos);
  EXPECT_NE(parse({"--config", config(nlohmann::json::array())}).find("one JSON object"), std::string::npos);
}

TEST_F(CommandLineTest, TakesOverwriteFromTheLineOnly) {
  for (const bool value : {false, true}) {
    const auto file = config({{"overwrite", value}});
    EXPECT_EQ(parse({"--config", file}), "--config " + file + ": --overwrite must be given on the command line");
    EXPECT_FALSE(run_.overwrite);
  }
}

TEST_F(CommandLineTest, RefusesANullCharacter) {
  const std::string text("a\0b", 3);
  EXPECT_NE(parse({"--config", config({{"data", text}})}).find("\"data\" cannot be \"a\\u0000b\""), std::string::npos);
  EXPECT_NE(parse({"--config", config({{"out", text}})}).find("\"out\" cannot be"), std::string::npos);
}

TEST_F(CommandLineTest, NamesTheFilesThatAProgramReads) {
  const auto file = config({{"data", "a.csv"}, {"input_files", {{"data", "7"}}}, {"files", {}}, {"torchlcp_run", 2}});
  EXPECT_EQ(parse({}), "");
  EXPECT_TRUE(line_.input_files().empty());
  EXPECT_EQ(parse({"--config", file}), "");
  EXPECT_EQ(line_.input_files(), (std::map<std::string, std::filesystem::path>{{"config", file}, {"data", "a.csv"}}));
}

TEST_F(CommandLineTest, AgreesWithTheRunThatItContinues) {
  EXPECT_EQ(parse({"--mu", "0.5"}), "");
  EXPECT_NO_THROW(line_.agree_with({{"mu", 0.5}, {"seed", 9}}, "checkpoint.pt"));
  EXPECT_EQ(run_.seed, 9);
  EXPECT_THROW(line_.agree_with({{"mu", 0.6}}, "checkpoint.pt"), UsageError);
  EXPECT_THROW(line_.agree_with({{"samples", "many"}}, "checkpoint.pt"), UsageError);
}

}  // namespace lcp::training::command_line_test
