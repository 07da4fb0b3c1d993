#include "run/trainer.h"

#include <gtest/gtest.h>
#include <torch/nn/modules/linear.h>
#include <torch/types.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "run/error.h"

namespace lcp::training::trainer_test {

namespace fs = std::filesystem;

class TrainerTest : public ::testing::Test {
 protected:
  TrainerTest() : folder_(fs::temp_directory_path() / ("torchlcp_trainer_test_" + std::to_string(::getpid()))) {}
  ~TrainerTest() override { fs::remove_all(folder_); }

  // Trains for 10 iterations in a folder of that name, and gets a signal during one of them. Returns the status.
  std::optional<int> train(const std::string& name, bool resuming, int interrupted = -1) {
    CommandLine line("train_direct", "What it does.");
    RunFlags run;
    TrainingFlags training{.iterations = 10, .learning_rate = 0.1};
    run.add_to(line);
    training.add_to(line);
    run.out = folder_ / name;
    run.quiet = true;
    training.resume = resuming;

    FolderLock lock(run.out);
    std::optional<Checkpoint> checkpoint = resume(line, lock, training.resume);
    OutputFolder out(line, run, std::move(lock));
    Trainer trainer(out, run, training, std::move(checkpoint));
    torch::manual_seed(0);
    torch::nn::Linear model(1, 1);
    const torch::Tensor x = torch::linspace(-1, 1, 4).unsqueeze(1);
    const auto loss = [&](const torch::Tensor& rows, double done) -> LossTerms {
      if (done == interrupted / 10. && rows.size(0) < 4) std::raise(SIGTERM);
      return {{"loss", (model(x.index_select(0, rows)) - 2 * x.index_select(0, rows)).square().mean()}};
    };
    return trainer.train(*model, 4, 2, 1, loss, [] { return NamedValues{}; });
  }

  // Trains with chunks of so many samples, of a loss one parameter of which has no gradient, and returns the checkpoint
  // and the mean losses of the steps.
  std::pair<Checkpoint, std::vector<double>> train_in_chunks(std::int64_t chunk) {
    CommandLine line("train_direct", "What it does.");
    RunFlags run;
    const TrainingFlags training{.iterations = 5, .learning_rate = 0.1};
    run.add_to(line);
    run.out = folder_ / "chunks";
    run.quiet = true;
    OutputFolder out(line, run);
    Trainer trainer(out, run, training, std::nullopt);
    torch::manual_seed(0);
    torch::nn::Linear model(3, 1);
    model->to(torch::kDouble);
    model->register_parameter("unused", torch::ones({2}, torch::kDouble));
    const torch::Tensor x = torch::randn({7, 3}, torch::kDouble);
    const auto loss = [&](const torch::Tensor& rows, double) -> LossTerms {
      EXPECT_TRUE(!at::GradMode::is_enabled() || rows.size(0) <= chunk);
      const torch::Tensor error = model(x.index_select(0, rows)) - x.index_select(0, rows).square();
      return {{"loss", error.square().mean()}, {"size", error.abs().mean()}};
    };
    std::vector<double> sizes;
    trainer.train(*model, 7, 7, 1, loss, [] { return NamedValues{}; },
                  {.chunk = chunk, .after = [&](const NamedValues& terms) { sizes.push_back(terms.at(1).second); }});
    EXPECT_TRUE((model->named_parameters()["unused"] == 1).all().item<bool>());
    return {Checkpoint::read(folder_ / "chunks" / "checkpoint.pt"), sizes};
  }

  std::string content(const std::string& name) const { return read_file(folder_ / name); }

  fs::path folder_;
};

TEST_F(TrainerTest, EndsWithItsStatusAtAnyIterationThatASignalComesIn) {
  EXPECT_EQ(train("whole", false), std::nullopt);
  for (const int interrupted : {0, 4, 9}) {
    EXPECT_EQ(train("out", false, interrupted), 128 + SIGTERM);
    const Checkpoint checkpoint = Checkpoint::read(folder_ / "out" / "checkpoint.pt");
    EXPECT_EQ(checkpoint.state["iteration"], interrupted + 1);
    EXPECT_EQ(train("out", true), std::nullopt);
    EXPECT_EQ(content("out/history.csv"), content("whole/history.csv"));
    EXPECT_EQ(content("out/checkpoint.pt"), content("whole/checkpoint.pt"));
  }
}

TEST_F(TrainerTest, ChunksChangeTheResultByRoundingAlone) {
  const auto [whole, sizes] = train_in_chunks(kSamplesOfAChunk);
  EXPECT_FALSE(whole.tensors.contains("adam.unused.step"));
  for (const std::int64_t chunk : {1, 3, 7, 100}) {
    const auto [parts, sizes_of_parts] = train_in_chunks(chunk);
    EXPECT_EQ(parts.tensors.size(), whole.tensors.size());
    for (const auto& [name, tensor] : whole.tensors) {
      EXPECT_TRUE(torch::allclose(parts.tensors.at(name), tensor, 1e-12, 1e-14)) << name;
    }
    ASSERT_EQ(sizes_of_parts.size(), 5);
    for (std::size_t k = 0; k < 5; ++k) EXPECT_NEAR(sizes_of_parts[k], sizes[k], 1e-12);
  }
}

TEST_F(TrainerTest, ResumesOnlyWhereNoOtherRunIs) {
  EXPECT_EQ(train("out", false, 4), 128 + SIGTERM);
  const FolderLock lock(folder_ / "out");
  EXPECT_THROW(train("out", true), UsageError);
}

}  // namespace lcp::training::trainer_test
