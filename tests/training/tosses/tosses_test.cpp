#include "tosses/tosses.h"

#include <gtest/gtest.h>
#include <torch/csrc/jit/serialization/pickle.h>
#include <unistd.h>

#include <fstream>
#include <limits>

#include "run/error.h"
#include "run/files.h"

namespace lcp::training::tosses_test {

using torch::Tensor;

class TossesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() / ("torchlcp_tosses_test_" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  void write(const std::string& name, const Tensor& x) {
    const std::vector<char> bytes = torch::jit::pickle_save(x);
    std::ofstream(folder_ / name, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  }

  std::string error() {
    try {
      read_tosses(folder_, 1);
    } catch (const UsageError& error) {
      std::string text = error.what();
      for (auto at = text.find(folder_.string()); at != std::string::npos; at = text.find(folder_.string())) {
        text.replace(at, folder_.string().size(), "FOLDER");
      }
      return text;
    }
    return "no error";
  }

  static Tensor samples(std::int64_t count) {
    torch::manual_seed(0);
    Tensor x = torch::randn({count, 19}, torch::kDouble);
    const Tensor quaternion = x.slice(1, 3, 7);
    quaternion.div_(quaternion.norm(2, 1, true));
    return x;
  }

  std::filesystem::path folder_;
};

TEST_F(TossesTest, ReadsTensorsAndTablesInTheOrderOfTheirNumbers) {
  const Tensor x = samples(5);
  write("10.pt", x.unsqueeze(0));
  write("2.pt", 2 * x.slice(1, 0, 13) - x.slice(1, 0, 13));
  Table table;
  for (std::int64_t k = 0; k < 13; ++k) {
    const Tensor column = x.select(1, k).contiguous();
    table.add(kTossColumns[k], {column.const_data_ptr<double>(), column.const_data_ptr<double>() + 5});
  }
  std::ofstream(folder_ / "1.csv") << csv_text(table);
  std::ofstream(folder_ / "LICENSE") << "text";
  const std::vector<Toss> tosses = read_tosses(folder_, 0.5);
  ASSERT_EQ(tosses.size(), 3u);
  EXPECT_EQ(tosses[0].name + " " + tosses[1].name + " " + tosses[2].name, "1.csv 2.pt 10.pt");
  for (const Toss& toss : tosses) {
    EXPECT_EQ(toss.count(), 5);
    EXPECT_TRUE(torch::equal(toss.position, 0.5 * x.slice(1, 0, 3)));
    EXPECT_TRUE(torch::allclose(toss.orientation, x.slice(1, 3, 7), 1e-15));
    EXPECT_TRUE(torch::equal(toss.velocity, 0.5 * x.slice(1, 7, 10)));
    EXPECT_TRUE(torch::equal(toss.angular_velocity, x.slice(1, 10, 13)));
  }
}

TEST_F(TossesTest, NamesFileRowAndColumn) {
  EXPECT_EQ(error(), "FOLDER: holds no file of a toss, which ends with .pt or .csv");
  Tensor x = samples(5);
  x[3][8] = std::numeric_limits<double>::quiet_NaN();
  write("a.pt", x);
  EXPECT_EQ(error(), "FOLDER/a.pt: row 4: v_y is not finite");
  x = samples(5);
  x[1].slice(0, 3, 7).mul_(2);
  write("a.pt", x);
  EXPECT_EQ(error(), "FOLDER/a.pt: row 2: the quaternion must have the length 1; got 2");
  write("a.pt", samples(2));
  EXPECT_EQ(error(), "FOLDER/a.pt: has 2 samples; a toss has at least 3");
  write("a.pt", samples(5).slice(1, 0, 12));
  EXPECT_EQ(error(),
            "FOLDER/a.pt: must hold a tensor [samples, 13 or more] of floating-point numbers; got Double [5, 12]");
  std::ofstream(folder_ / "a.pt") << "no tensor";
  EXPECT_EQ(error(), "FOLDER/a.pt: no tensor that torch.save wrote");
  folder_ /= "none";
  EXPECT_EQ(error(), "cannot read the folder FOLDER: No such file or directory");
  folder_ = folder_.parent_path();
}

}  // namespace lcp::training::tosses_test
