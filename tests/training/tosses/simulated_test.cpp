#include "tosses/simulated.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "lcp/physics/rotation.h"
#include "tosses/protocols.h"

namespace lcp::training::simulated_test {

using torch::Tensor;

CubeContact contact() { return {.substeps = 1}; }

// Without noise, the recorded velocities are the medians of five differences of positions.
TEST(SimulatedTest, VelocitiesAreFilteredDifferences) {
  const CubeFlags flags;
  const SimulatedTosses exact{.count = 3, .position_noise = 0, .orientation_noise = 0};
  for (const Toss& toss : simulate_tosses(flags.cube(), contact(), exact, 1)) {
    ASSERT_GE(toss.count(), 82);
    ASSERT_LE(toss.count(), 200);
    const Tensor velocity = exact.rate * toss.position.diff(1, 0);
    for (const std::int64_t k : {10, 25, 40}) {
      const Tensor median = std::get<0>(velocity.slice(0, k - 3, k + 2).median(0));
      EXPECT_TRUE(at::allclose(toss.velocity[k], median, 1e-12, 1e-12)) << k;
    }
    const Tensor turned =
        physics::turned(toss.orientation.slice(0, 0, 3), toss.angular_velocity.slice(0, 1, 4) / exact.rate);
    EXPECT_LT(physics::angle_between(turned, toss.orientation.slice(0, 1, 4)).max().item<double>(), 1e-3);
    // It begins in flight and ends at rest on a face.
    EXPECT_GT(BodyForm(flags.side).lowest_point(toss.position[0], toss.orientation[0]).item<double>(), 0);
    EXPECT_NEAR(BodyForm(flags.side).lowest_point(toss.position[-1], toss.orientation[-1]).item<double>(), 0, 1e-4);
    EXPECT_LT(toss.velocity[-1].norm().item<double>(), 0.02);
  }
}

TEST(SimulatedTest, TheSeedRepeatsTossesAndNoiseIsAsLargeAsStated) {
  const Cube cube = CubeFlags().cube();
  const auto tosses = [&](double noise, std::int64_t seed) {
    return simulate_tosses(cube, contact(), {.count = 2, .position_noise = noise, .orientation_noise = 0}, seed);
  };
  const std::vector<Toss> noisy = tosses(1e-3, 3), again = tosses(1e-3, 3), exact = tosses(0, 3), other = tosses(0, 4);
  for (std::size_t k = 0; k < 2; ++k) {
    EXPECT_TRUE(at::equal(noisy[k].position, again[k].position));
    EXPECT_FALSE(at::equal(exact[k].position[0], other[k].position[0]));
    const Tensor noise = noisy[k].position - exact[k].position;
    EXPECT_NEAR(noise.std().item<double>(), 1e-3, 2e-4);
    EXPECT_LT(noise.mean().abs().item<double>(), 2e-4);
  }
}

}  // namespace lcp::training::simulated_test
