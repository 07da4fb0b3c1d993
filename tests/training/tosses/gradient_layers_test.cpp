#include "tosses/gradient_layers.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <limits>

#include "support/cube_throw.h"
#include "tosses/simulated.h"

namespace lcp::training::gradient_layers_test {

using torch::Tensor;

constexpr double kRate = 148;

// The gradient that a layer states is that of its own loss, but for the smoothed ones, whose bias is wanted.
TEST(GradientLayersTest, AnswersAreTheDerivativesOfTheirLosses) {
  CubeFlags flags;
  const CubeContact contact{.substeps = 1};
  const auto windows =
      windows_of(simulate_tosses(flags.cube(), contact, {.count = 2}, 0), flags.side, flags.gravity, kRate);
  const Segments some = recorded(flags.cube(), contact, kRate, 6);
  const std::vector<GradientLayer> layers =
      gradient_layers({flags.cube(), contact, kRate, flags.side, {1e-4}, 0.05, 1e-6}, windows);
  ASSERT_EQ(layers.size(), 11u);
  EXPECT_EQ(layers[kReference].name, "differences, wide");
  const Tensor raw = torch::tensor({{0.2, -0.1, 0.3, 0.1}, {-0.2, 0.3, 0.1, -0.3}}, torch::kDouble);
  for (const GradientLayer& layer : layers) {
    const Tensor gradient = gradient_of(layer, raw, some), own = differences(layer, 1e-6, raw, some);
    ASSERT_TRUE(gradient.isfinite().all().item<bool>()) << layer.name;
    const double size = own.norm().item<double>(), error = (gradient - own).norm().item<double>() / size;
    EXPECT_GT(size, 1e-4) << layer.name;
    const bool is_smoothed = layer.name.find("kappa") != std::string::npos;
    EXPECT_LT(error, is_smoothed || layer.difference > 1e-3 ? 0.2 : 1e-4) << layer.name;
    EXPECT_GE(error, is_smoothed ? 1e-6 : 0) << layer.name;
  }
}

TEST(GradientLayersTest, WindowsWithoutALossHaveNoGradient) {
  const Segments some = recorded(CubeFlags().cube(), {.substeps = 1}, kRate, 2);
  const GradientLayer layer{"squares", "squares", [](const Tensor& raw, const Segments&) {
                              const Tensor sum = raw.square().sum(-1);
                              return at::where(sum < 1, sum, std::numeric_limits<double>::quiet_NaN());
                            }};
  const Tensor raw = torch::tensor({{0.1, 0.2, 0.3, 0.4}, {1., 1., 1., 1.}}, torch::kDouble);
  const Tensor found = gradient_of(layer, raw, some);
  EXPECT_TRUE(at::allclose(found[0], 2 * raw[0]));
  EXPECT_TRUE(found[1].isnan().all().item<bool>());
  GradientLayer by_differences = layer;
  by_differences.difference = 1e-4;
  EXPECT_TRUE(at::allclose(gradient_of(by_differences, raw, some)[0], 2 * raw[0], 1e-7));
}

}  // namespace lcp::training::gradient_layers_test
