#include "network/black_box.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include "run/random.h"

namespace lcp::training::black_box_test {

using torch::Tensor;

Motion motion(std::int64_t count, std::int64_t seed, const std::function<Tensor(const Tensor&)>& f) {
  const Tensor x = torch::randn({count, 2}, generator(seed, Stream::kSpeeds), torch::kDouble);
  return {x, f(x)};
}

BlackBox best(const std::function<Tensor(const Tensor&)>& f, double* heldout_error) {
  BlackBoxOptions options;
  options.iterations = 300;
  const Motion training = motion(200, 1, f), validation = motion(50, 2, f), heldout = motion(500, 3, f);
  BlackBox box = best_black_box(training, validation, training.x.std(0), training.v_next.std(0), options);
  *heldout_error = (box.predict(heldout.x) - heldout.v_next).square().mean().sqrt().item<double>();
  return box;
}

TEST(BlackBoxTest, IsAnAffineMapWhereThatIsTheTruth) {
  double error = 0;
  const BlackBox box = best([](const Tensor& x) { return 1 + 2 * x.slice(1, 0, 1) - x.slice(1, 1, 2); }, &error);
  EXPECT_EQ(box.name, "affine");
  EXPECT_LT(error, 1e-13);
}

TEST(BlackBoxTest, IsANetworkWhereTheTruthIsNone) {
  double error = 0;
  const auto kink = [](const Tensor& x) { return 3 * x.sum(1, true).relu() + x.square(); };
  const BlackBox box = best(kink, &error), again = best(kink, &error);
  EXPECT_TRUE(box.name.starts_with("relu") || box.name.starts_with("tanh")) << box.name;
  EXPECT_LT(error, 0.5);
  EXPECT_LT(box.validation_error, 0.1);
  EXPECT_EQ(box.validation_error, again.validation_error);
}

}  // namespace lcp::training::black_box_test
