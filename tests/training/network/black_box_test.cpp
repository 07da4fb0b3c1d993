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

BlackBox best(std::int64_t family, const std::function<Tensor(const Tensor&)>& f, double* heldout_error) {
  BlackBoxOptions options;
  options.iterations = 300;
  const Motion training = motion(200, 1, f), validation = motion(50, 2, f), heldout = motion(500, 3, f);
  BlackBox box = best_of_family(family, training, validation, training.x.std(0), training.v_next.std(0), options);
  *heldout_error = (box.predict(heldout.x) - heldout.v_next).square().mean().sqrt().item<double>();
  return box;
}

TEST(BlackBoxTest, TheFirstFamilyIsTheAffineMap) {
  double error = 0;
  const auto affine = [](const Tensor& x) { return 1 + 2 * x.slice(1, 0, 1) - x.slice(1, 1, 2); };
  const BlackBox box = best(0, affine, &error);
  EXPECT_EQ(box.name, "affine");
  EXPECT_LT(error, 1e-13);
  EXPECT_LT(box.validation_error, 1e-13);
}

TEST(BlackBoxTest, TheOthersAreNetworks) {
  double error = 0, error_again = 0, affine_error = 0;
  const auto kink = [](const Tensor& x) { return 3 * x.sum(1, true).relu() + x.square().slice(1, 0, 1); };
  best(0, kink, &affine_error);
  for (const std::int64_t family : {3, 7}) {
    const BlackBox box = best(family, kink, &error), again = best(family, kink, &error_again);
    EXPECT_TRUE(box.name.starts_with(family == 3 ? "relu 64, learning rate 0.0" : "tanh 16, learning rate 0.0"));
    EXPECT_LT(error, 0.6 * affine_error) << box.name;
    EXPECT_EQ(error, error_again);
    // The same family from other random starts.
    const BlackBox other = best(family + kBlackBoxFamilies, kink, &error_again);
    EXPECT_EQ(other.weights.front().sizes(), box.weights.front().sizes());
    EXPECT_NE(error, error_again);
    // Any dimensions before the last one.
    const Tensor x = torch::randn({4, 3, 2}, torch::kDouble);
    EXPECT_TRUE(at::allclose(box.predict(x)[2], box.predict(x[2]), 1e-13, 1e-13));
  }
}

}  // namespace lcp::training::black_box_test
