#include "lcp/identification/particle_filter.h"

#include <ATen/CPUGeneratorImpl.h>
#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <cmath>

#include "support/tensors.h"

namespace lcp::identification {
namespace {

using testing::everywhere;
using testing::largest;
using testing::number;
using torch::Tensor;

at::Generator seeded(std::uint64_t seed) { return at::make_generator<at::CPUGeneratorImpl>(seed); }

Tensor log_density(const Tensor& error, double deviation) { return -(error / deviation).square() / 2; }

// A random walk seen through noise, for which the Kalman filter has the exact mean.
TEST(ParticleFilterTest, AgreesWithTheKalmanFilter) {
  torch::manual_seed(4);
  constexpr std::int64_t kSteps = 20, kTracks = 3, kParticles = 20'000;
  constexpr double kWalk = 0.5, kNoise = 0.7;
  const Tensor truth = (kWalk * torch::randn({kSteps + 1, kTracks}, torch::kDouble)).cumsum(0);
  const Tensor data = truth + kNoise * torch::randn({kSteps + 1, kTracks}, torch::kDouble);
  const FilterModel model{
      [](const Tensor& x) { return x + kWalk * torch::randn(x.sizes(), torch::kDouble); },
      [&](const Tensor& x, std::int64_t k) { return log_density(x.squeeze(-1) - data[k].unsqueeze(-1), kNoise); }};
  const Tensor start = torch::randn({kTracks, kParticles, 1}, torch::kDouble);
  const ParticleFilter filter = particle_filter(model, start, kSteps, seeded(1));

  Tensor mean = torch::zeros({kTracks}, torch::kDouble);
  double variance = 1;
  for (std::int64_t k = 0; k <= kSteps; ++k) {
    if (k > 0) variance += kWalk * kWalk;
    const double gain = variance / (variance + kNoise * kNoise);
    mean = mean + gain * (data[k] - mean);
    variance *= 1 - gain;
    EXPECT_LT(largest(filter.mean[k].squeeze(-1) - mean), 0.03) << k;
    EXPECT_LT(largest(filter.std[k].squeeze(-1) - std::sqrt(variance)), 0.03) << k;
  }
  EXPECT_TRUE(everywhere(filter.effective > 0.01 * kParticles));
  EXPECT_TRUE(everywhere(filter.distinct.slice(0, 1) <= filter.distinct.slice(0, 0, -1)));
}

// Without process noise the particles degenerate: those left are copies of the best ones of the start.
TEST(ParticleFilterTest, CollapsesOnWhatIsConstantUnlessRoughened) {
  const FilterModel model{[](const Tensor& x) { return x; },
                          [](const Tensor& x, std::int64_t) { return log_density(x.squeeze(-1) - 0.3, 0.01); }};
  const Tensor start = torch::linspace(0, 1, 400, torch::kDouble).view({1, 400, 1});
  const ParticleFilter plain = particle_filter(model, start, 60, seeded(2));
  EXPECT_LT(plain.distinct[-1].item<std::int64_t>(), 8);
  const Tensor left = plain.particles.flatten();
  EXPECT_EQ(std::get<0>(at::_unique(left)).size(0), plain.distinct[-1].item<std::int64_t>());
  // Copies of one particle are no more effective than it is.
  EXPECT_TRUE(everywhere(plain.effective.slice(0, 1) <= plain.distinct.slice(0, 0, -1) * (1 + 1e-12)));
  EXPECT_GT(plain.effective[0].item<double>(), 8);
  ParticleFilterOptions options;
  options.roughening = torch::full({1}, 0.2, torch::kDouble);
  const ParticleFilter rough = particle_filter(model, start, 60, seeded(2), options);
  EXPECT_EQ(std::get<0>(at::_unique(rough.particles.flatten())).size(0), 400);
  EXPECT_LT(std::abs(rough.mean[-1].item<double>() - 0.3), 0.005);
  EXPECT_TRUE(everywhere(rough.distinct.slice(0, 1) > 100));
}

TEST(ParticleFilterTest, KeepsParticlesThatExplainNothing) {
  const FilterModel model{
      [](const Tensor& x) { return x + 1; },
      [](const Tensor&, std::int64_t k) {
        return k == 1 ? torch::full({2, 4}, -INFINITY, torch::kDouble) : torch::zeros({2, 4}, torch::kDouble);
      }};
  const Tensor start = torch::arange(8, torch::kDouble).view({2, 4, 1});
  const ParticleFilter filter = particle_filter(model, start, 2, seeded(3));
  EXPECT_TRUE(everywhere(filter.effective[1] == 0) && everywhere(filter.effective[2] == 4));
  EXPECT_TRUE(everywhere(filter.distinct == 4));
  EXPECT_TRUE(torch::equal(filter.particles, start + 2));
}

TEST(ParticleFilterTest, ResamplesInProportionToTheWeights) {
  const Tensor weights = torch::tensor({{0.5, 0.25, 0.125, 0.125}}, torch::kDouble);
  const FilterModel model{[](const Tensor& x) { return x; },
                          [&](const Tensor&, std::int64_t) { return weights.log(); }};
  const Tensor start = torch::arange(4, torch::kDouble).view({1, 4, 1});
  double twice = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const Tensor left = particle_filter(model, start, 0, seeded(seed)).particles.flatten();
    EXPECT_EQ((left == 0).sum().item<std::int64_t>(), 2);
    EXPECT_EQ((left == 1).sum().item<std::int64_t>(), 1);
    twice += static_cast<double>((left == 2).sum().item<std::int64_t>()) / 200;
  }
  EXPECT_NEAR(twice, 0.5, 0.15);
  EXPECT_NEAR(particle_filter(model, start, 0, seeded(1)).effective.item<double>(), 1 / (0.25 + 0.0625 + 0.03125),
              1e-12);
}

}  // namespace
}  // namespace lcp::identification
