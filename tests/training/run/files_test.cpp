#include "run/files.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <limits>
#include <random>

#include "run/error.h"

namespace lcp::training::files_test {

class FilesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() / ("torchlcp_files_test_" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::filesystem::path with(const std::string& content) {
    auto path = folder_ / "data.csv";
    std::ofstream(path) << content;
    return path;
  }

  std::string error_of(const std::string& content, const std::vector<std::string>& columns) {
    try {
      read_csv(with(content), columns);
    } catch (const UsageError& error) {
      std::string text = error.what();
      const std::string path = (folder_ / "data.csv").string();
      if (const auto at = text.find(path); at != std::string::npos) text.replace(at, path.size(), "data.csv");
      return text;
    }
    return "no error";
  }

  std::filesystem::path folder_;
};

TEST_F(FilesTest, ReadsTheBitsItWrote) {
  std::mt19937_64 random(1);
  std::vector<double> values = {0.0, -0.0, 0.1, 1e-310, -1.7976931348623157e308, 4.9406564584124654e-324};
  for (int k = 0; k < 1000; ++k) values.push_back(std::normal_distribution<double>()(random));
  Table table;
  table.add("x", values);
  table.add("y", std::vector<double>(values.rbegin(), values.rend()));
  const Table again = read_csv(with(csv_text(table)), {"y", "x"});
  EXPECT_EQ(again["x"], table["x"]);
  EXPECT_EQ(again["y"], table["y"]);
}

TEST_F(FilesTest, IgnoresColumnsOrderBlankLinesAndCarriageReturns) {
  const Table table =
      read_csv(with("\xEF\xBB\xBF\"name\", u ,\"v\"\r\nfirst,1,2\r\n\r\nsecond,+3,-4e0\r\n"), {"v", "u"}, {"w"});
  EXPECT_EQ(table["v"], (std::vector<double>{2, -4}));
  EXPECT_EQ(table["u"], (std::vector<double>{1, 3}));
  EXPECT_FALSE(table.has("w"));
}

TEST_F(FilesTest, NamesWhatIsWrongWithAFile) {
  EXPECT_EQ(error_of("v,u\n1,2\n3,x\n", {"v", "u"}), "data.csv, line 3, column \"u\": \"x\" is no finite number");
  EXPECT_EQ(error_of("v,u\n1,+-2\n", {"u"}), "data.csv, line 2, column \"u\": \"+-2\" is no finite number");
  EXPECT_EQ(error_of("v,u\n1,nan\n", {"u"}), "data.csv, line 2, column \"u\": \"nan\" is no finite number");
  EXPECT_EQ(error_of("v,u\n1,inf\n", {"u"}), "data.csv, line 2, column \"u\": \"inf\" is no finite number");
  EXPECT_EQ(error_of("v,u\n1,1e999\n", {"u"}), "data.csv, line 2, column \"u\": \"1e999\" is no finite number");
  EXPECT_EQ(error_of("v,u\n1,\n", {"u"}), "data.csv, line 2, column \"u\": \"\" is no finite number");
  EXPECT_EQ(error_of("v,u\n1,2,3\n", {"u"}), "data.csv, line 2: has 3 fields, the header 2");
  EXPECT_EQ(error_of("v,u\n1,2\n", {"v", "v_next"}), "data.csv: has no column \"v_next\"; its header is \"v,u\"");
  EXPECT_EQ(error_of("v,v\n1,2\n", {"v"}), "data.csv: column \"v\" appears twice");
  EXPECT_EQ(error_of("v,u\n", {"v"}), "data.csv: has no rows");
  EXPECT_EQ(error_of("", {"v"}), "data.csv: has no column \"v\"; its header is \"\"");
  EXPECT_THROW(read_csv(folder_ / "none.csv", {"v"}), UsageError);
  EXPECT_THROW(read_csv(folder_, {"v"}), UsageError);
}

TEST_F(FilesTest, LeavesAnExistingFileAndNoOtherWhereItCannotWrite) {
  std::filesystem::create_directory(folder_ / "a");  // which no file replaces
  EXPECT_THROW(UnfinishedFile(folder_ / "a", "new", folder_).finish(), UsageError);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_), {}), 1);
}

TEST_F(FilesTest, NamesAFileThatCannotBeRead) {
  try {
    read_file("/proc/self/mem");  // which opens, but has no first byte
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_STREQ(error.what(), "cannot read /proc/self/mem: Input/output error");
  }
}

TEST_F(FilesTest, NamesAFileThatIsNoJson) {
  try {
    read_json(with("{\"a\": 1,}"));
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_NE(std::string(error.what()).find("data.csv: no JSON at byte 9"), std::string::npos) << error.what();
  }
  EXPECT_THROW(read_json(with("{\"a\": 1e999}")), UsageError);
  for (const char* other : {"[]", "1", "null", "\"text\""}) EXPECT_THROW(read_json(with(other)), UsageError) << other;
}

}  // namespace lcp::training::files_test
