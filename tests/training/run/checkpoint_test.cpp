#include "run/checkpoint.h"

#include <gtest/gtest.h>
#include <torch/script.h>
#include <torch/types.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <random>
#include <vector>

#include "run/error.h"
#include "run/files.h"

namespace lcp::training::checkpoint_test {

namespace fs = std::filesystem;
using torch::Tensor;

class CheckpointTest : public ::testing::Test {
 protected:
  CheckpointTest() {
    folder_ = fs::temp_directory_path() / ("torchlcp_checkpoint_test_" + std::to_string(::getpid()));
    fs::create_directories(folder_);
  }
  ~CheckpointTest() override { fs::remove_all(folder_); }

  Checkpoint read(const std::string& bytes) {
    std::ofstream(folder_ / "checkpoint.pt") << bytes;
    return Checkpoint::read(folder_ / "checkpoint.pt");
  }

  std::string error_of(const std::string& bytes) {
    try {
      read(bytes);
    } catch (const UsageError& error) {
      return error.what();
    }
    return "no error";
  }

  // A file with this header and these bytes of tensors.
  static std::string file(const std::string& header, const std::string& bytes) {
    std::string length(8, '\0');
    for (std::size_t k = 0; k < 8; ++k) length[k] = static_cast<char>(header.size() >> (8 * k) & 0xff);
    return length + header + bytes;
  }

  static std::string with_tensor(const std::string& entry, const std::string& bytes) {
    return file(R"({"__metadata__":{"state":"{}"},"x":)" + entry + "}", bytes);
  }

  fs::path folder_;
};

TEST_F(CheckpointTest, ReadsTheBitsItWrote) {
  const Tensor x = torch::tensor(std::vector<double>{0.1, -0.0, NAN, INFINITY, 5e-324}, torch::kDouble);
  Checkpoint checkpoint{{{"iteration", 7}, {"name", "a\n\"b\""}}, {}};
  checkpoint.tensors = {{"x", x},
                        {"float", x.to(torch::kFloat).unsqueeze(0)},
                        {"count", torch::tensor(3, torch::kLong)},
                        {"mask", torch::tensor({1, 0}, torch::kLong) > 0},
                        {"transposed", torch::arange(6, torch::kDouble).view({2, 3}).t()},
                        {"nothing", torch::empty({0, 4}, torch::kDouble)}};
  const Checkpoint again = read(checkpoint.encode());
  EXPECT_EQ(again.state, checkpoint.state);
  ASSERT_EQ(again.tensors.size(), checkpoint.tensors.size());
  for (const auto& [name, tensor] : checkpoint.tensors) {
    const Tensor& other = again.tensors.at(name);
    EXPECT_EQ(other.sizes(), tensor.sizes());
    EXPECT_EQ(other.scalar_type(), tensor.scalar_type());
    const Tensor written = tensor.contiguous();
    ASSERT_EQ(other.nbytes(), written.nbytes());
    EXPECT_EQ(std::memcmp(other.const_data_ptr(), written.const_data_ptr(), written.nbytes()), 0) << name;
  }
}

TEST_F(CheckpointTest, RefusesWhatIsNoCheckpoint) {
  const std::string refused = (folder_ / "checkpoint.pt").string() + ": is no checkpoint of this program";
  const std::string number(8, '\0');
  EXPECT_EQ(error_of(with_tensor(R"({"dtype":"F64","shape":[],"data_offsets":[0,8]})", number)), "no error");
  for (const char* entry :
       {R"({"dtype":"F64","shape":[],"data_offsets":[0,16]})", R"({"dtype":"F64","shape":[],"data_offsets":[8,0]})",
        R"({"dtype":"F64","shape":[],"data_offsets":[-8,0]})", R"({"dtype":"F64","shape":[2],"data_offsets":[0,8]})",
        R"({"dtype":"F64","shape":[-1],"data_offsets":[0,8]})",
        R"({"dtype":"F64","shape":[0,1e9],"data_offsets":[0,0]})",
        R"({"dtype":"F64","shape":[4294967296,4294967296],"data_offsets":[0,0]})",
        R"({"dtype":"F64","shape":[2305843009213693953],"data_offsets":[0,8]})",
        R"({"dtype":"object","shape":[],"data_offsets":[0,8]})", R"({"dtype":"F64","shape":"x","data_offsets":[0,8]})",
        R"({"dtype":"F64"})", "[]", "1"}) {
    EXPECT_EQ(error_of(with_tensor(entry, number)), refused) << entry;
  }
  EXPECT_EQ(error_of(with_tensor(R"({"dtype":"BOOL","shape":[1],"data_offsets":[0,1]})", "\2")), refused);
  for (const std::string& bytes :
       {std::string(), std::string("x"), std::string(1000, 'x'), std::string(8, '\xff'), file("{}", ""), file("[]", ""),
        file(R"({"__metadata__":{"state":"["}})", ""), file(R"({"__metadata__":{"state":"1"}})", ""),
        file(R"({"__metadata__":1})", ""), file(std::string(10'000, '['), "")}) {
    EXPECT_EQ(error_of(bytes), refused) << bytes.substr(0, 40);
  }
}

TEST_F(CheckpointTest, SurvivesAnyChangeOfAByte) {
  Checkpoint checkpoint{{{"iteration", 7}}, {{"x", torch::arange(4, torch::kDouble)}}};
  const std::string whole = checkpoint.encode();
  std::mt19937 random(1);
  for (int k = 0; k < 2000; ++k) {
    std::string bytes = whole;
    bytes[random() % bytes.size()] = static_cast<char>(random());
    if (k % 3 == 0) bytes.resize(random() % bytes.size());
    const std::string error = error_of(bytes);
    EXPECT_TRUE(error == "no error" || error.find("checkpoint.pt: is ") != std::string::npos) << error;
  }
}

TEST_F(CheckpointTest, RunsNoCodeOfATorchScriptModule) {
  const fs::path written = folder_ / "written";
  torch::jit::Module module("Malicious");
  module.register_attribute("x", c10::IntType::get(), 0);
  module.define(R"(
def __getstate__(self):
    return self.x

def __setstate__(self, state: int) -> None:
    self.x = state
    torch.save([torch.ones([1])], ")" +
                written.string() + R"(")
)");
  module.save((folder_ / "model.pt").string());
  torch::jit::load((folder_ / "model.pt").string());
  ASSERT_TRUE(fs::exists(written));  // as loading a module may do
  fs::remove(written);
  const std::string error = error_of(read_file(folder_ / "model.pt"));
  EXPECT_NE(error.find("is a TorchScript archive, as earlier versions wrote checkpoints"), std::string::npos) << error;
  EXPECT_FALSE(fs::exists(written));
}

}  // namespace lcp::training::checkpoint_test
