#include <gtest/gtest.h>
#include <torch/types.h>

#include <limits>
#include <map>
#include <mutex>

#include "network/black_box.h"

namespace lcp::training::black_box_passes_test {

using Iterations = std::map<std::int64_t, std::int64_t>;  // of each black box that is trained, by its number

constexpr double kForEver = std::numeric_limits<double>::infinity();

// Trains until there are `count` black boxes. Their validation errors are least for the number 20.
Iterations train_until(std::size_t count, BlackBoxes& boxes, const PassOptions& options) {
  Iterations trained;
  std::mutex mutex;
  const auto train = [&](std::int64_t number, std::int64_t iterations) {
    const std::scoped_lock lock(mutex);
    EXPECT_TRUE(trained.emplace(number, iterations).second) << number;
    return BlackBox{
        {}, {}, {}, {}, torch::ones({1}), torch::ones({1}), static_cast<double>((number - 20) * (number - 20))};
  };
  std::size_t changes = 0;
  const std::size_t before = boxes.trained.size();
  train_in_passes(
      boxes, options, train, [&] { ++changes; }, [&] { return boxes.trained.size() >= count; });
  EXPECT_TRUE(options.threads > 1 || changes == boxes.trained.size() - before);
  return trained;
}

TEST(BlackBoxPassesTest, OnePassTrainsEachFamilyOnce) {
  for (const std::int64_t threads : {1, 5}) {
    BlackBoxes boxes;
    const PassOptions options{.iterations = 7, .threads = threads, .quiet = true};
    const Iterations trained = train_until(1000, boxes, options);
    EXPECT_EQ(trained.size(), kBlackBoxFamilies);
    for (const auto& [number, iterations] : trained) EXPECT_EQ(iterations, 7) << number;
    EXPECT_EQ(boxes.trained.size(), kBlackBoxFamilies);
    EXPECT_EQ(boxes.best().validation_error, 64);  // of number 12
    EXPECT_TRUE(train_until(1000, boxes, options).empty());
  }
}

TEST(BlackBoxPassesTest, OtherPassesOfTwiceTheIterationsFollowWhileThereIsTime) {
  BlackBoxes boxes;
  const PassOptions options{.iterations = 7, .seconds = kForEver, .quiet = true};
  const Iterations trained = train_until(30, boxes, options);
  EXPECT_EQ(trained.size(), 31);  // the last one is discarded
  for (const auto& [number, iterations] : trained) {
    EXPECT_EQ(iterations, number < 13 ? 7 : number < 26 ? 14 : 28) << number;
  }
  EXPECT_FALSE(trained.contains(13) || trained.contains(26));  // the affine map is the same in each pass
  EXPECT_EQ(boxes.trained.rbegin()->first, 31);
  EXPECT_EQ(boxes.best().validation_error, 0);
}

TEST(BlackBoxPassesTest, APassThatHasBegunIsCompleted) {
  BlackBoxes boxes;
  PassOptions options{.iterations = 7, .seconds = kForEver, .quiet = true};
  train_until(30, boxes, options);
  boxes.seconds = options.seconds = 1;
  Iterations missing;
  for (std::int64_t number = 32; number < 39; ++number) missing[number] = 28;
  EXPECT_EQ(train_until(1000, boxes, options), missing);
}

}  // namespace lcp::training::black_box_passes_test
