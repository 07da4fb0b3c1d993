#include "network/systems.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include <algorithm>

#include "run/random.h"
#include "support/tensors.h"

namespace lcp::training::systems_test {

using testing::everywhere;
using testing::largest;
using testing::numbers;
using torch::Tensor;

MotionSystem system_of(const std::string& name, const PhysicsFlags& flags = {1, 1, 1, 1}, std::int64_t directions = 8) {
  const auto all = motion_systems(flags, directions);
  return *std::find_if(all.begin(), all.end(), [&](const MotionSystem& system) { return system.name == name; });
}

Tensor drawn(const MotionSystem& system, std::int64_t count = 2000) {
  return system.draw(count, generator(1, Stream::kSpeeds));
}

TEST(SystemsTest, HaveTheColumnsThatTheyName) {
  for (const PhysicsFlags& flags : {PhysicsFlags{1, 1, 1, 1}, PhysicsFlags{2, 0.1, 0.3, 9.81}}) {
    for (const MotionSystem& system : motion_systems(flags, 8)) {
      const auto& [positions, velocities, inputs, next] = system.columns;
      const Tensor x = drawn(system), v_next = system.next(x);
      EXPECT_EQ(x.size(1), static_cast<std::int64_t>(positions.size() + velocities.size() + inputs.size()))
          << system.name;
      EXPECT_EQ(v_next.size(1), static_cast<std::int64_t>(next.size())) << system.name;
      EXPECT_EQ(velocities.size(), next.size()) << system.name;
      EXPECT_TRUE(everywhere(v_next.isfinite())) << system.name;
      // Some of the steps end exactly at rest, most do not.
      const double resting = (v_next == 0).all(-1).to(torch::kDouble).mean().item<double>();
      EXPECT_GT(resting, 0.05) << system.name;
      EXPECT_LT(resting, 0.7) << system.name;
      ASSERT_EQ(static_cast<bool>(system.advance), !positions.empty()) << system.name;
      if (system.advance) {
        EXPECT_EQ(system.advance(x, v_next).size(1), static_cast<std::int64_t>(positions.size()));
      }
    }
  }
}

TEST(SystemsTest, FittedFactorsAreThoseOfTheMotion) {
  for (const MotionSystem& system : motion_systems({1, 1, 1, 1}, 4)) {
    const Tensor x = drawn(system, 500);
    const auto count = static_cast<std::int64_t>(system.constants.size());
    const Tensor factors = 1 + 0.1 * torch::rand({count}, generator(1, Stream::kStarts), torch::kDouble);
    EXPECT_LT(largest(fitted_factors(system, {x, system.model(x, factors)}) - factors), 1e-7) << system.name;
    // Noise moves each of them: all have an effect.
    const Tensor noise = 0.1 * torch::randn({500, 1}, generator(1, Stream::kVelocityNoise), torch::kDouble);
    const Tensor noisy = fitted_factors(system, {x, system.next(x) + noise});
    EXPECT_TRUE(everywhere((noisy != 1) & ((noisy - 1).abs() < 0.2))) << system.name << noisy;
  }
}

TEST(SystemsTest, FollowTheirUnits) {
  // The same motion in other units: velocities in dt mu g, forces in mu m g.
  const PhysicsFlags flags{2, 0.1, 0.3, 9.81};
  const double force = flags.max_friction(), velocity = flags.dt * force / flags.mass;
  for (const std::string name : {"sliding_block", "stribeck", "planar_block", "stacked_blocks"}) {
    const MotionSystem plain = system_of(name), other = system_of(name, flags);
    const Tensor x = drawn(plain);
    const std::int64_t d = x.size(1) / 2;
    const Tensor scaled = at::cat({x.slice(1, 0, d) * velocity, x.slice(1, d) * force}, 1);
    EXPECT_LT(largest(other.next(scaled) / velocity - plain.next(x)), 1e-12) << name;
  }
}

TEST(SystemsTest, FourDirectionsAreTwoBlocksOnDiagonals) {
  // The greatest force in any direction lies on a square, so that friction slows the two diagonals independently.
  const MotionSystem system = system_of("planar_block", {1, 1, 1, 1}, 4);
  const Tensor x = drawn(system);
  const Tensor free = x.slice(1, 0, 2) + x.slice(1, 2, 4);
  const Tensor turn = numbers({1, 1, 1, -1}).view({2, 2});
  const Tensor diagonals = at::matmul(free, turn);
  const Tensor slowed = at::matmul((diagonals - 1).relu() - (-diagonals - 1).relu(), turn) / 2;
  EXPECT_LT(largest(system.next(x) - slowed), 1e-13);
}

TEST(SystemsTest, StackedBlocksObeyCoulombsLaw) {
  const MotionSystem system = system_of("stacked_blocks");
  const Tensor x = drawn(system), v_next = system.next(x);
  const Tensor mass = numbers({1, 0.5});
  const Tensor friction = mass * (v_next - x.slice(1, 0, 2)) - x.slice(1, 2, 4);  // on each block
  const Tensor above = friction.select(1, 1), ground = friction.sum(1);
  const Tensor slide = v_next.select(1, 0), relative = v_next.select(1, 1) - slide;
  for (const auto& [force, motion, limit] : {std::tuple{ground, slide, 1.5}, std::tuple{above, relative, 0.75}}) {
    EXPECT_LT(largest(at::where(motion.abs() > 1e-12, force + limit * motion.sign(), 0)), 1e-12);
    EXPECT_LE(largest(force), limit + 1e-12);
  }
}

TEST(SystemsTest, TheMassBouncesOnTheGround) {
  const MotionSystem system = system_of("bouncing_mass");
  const auto next = [&](double y, double v_x, double v_y) {
    return system.next(numbers({y, v_x, v_y}).unsqueeze(0))[0];
  };
  EXPECT_TRUE(torch::equal(next(9, 1, -2), numbers({1, -3})));    // falls
  EXPECT_TRUE(torch::equal(next(0, 8, -4), numbers({1, 2})));     // hits, bounces and slides: the impulse is 7
  EXPECT_TRUE(torch::equal(next(0, 0.5, 0), numbers({0, 0})));    // comes to rest
  EXPECT_TRUE(torch::equal(next(0, 3, 0), numbers({2, 0})));      // slides
  EXPECT_TRUE(torch::equal(next(1, 0, -1), numbers({0, -0.5})));  // slows down before it hits
  EXPECT_NEAR(system.advance(numbers({1, 0, -1}), numbers({0, -0.5})).item<double>(), 0.5, 1e-15);
}

TEST(SystemsTest, TheTrackIsClosed) {
  const MotionSystem system = system_of("track");
  const Tensor x = drawn(system);
  const Tensor around = x + numbers({3.14159265358979323846, 0, 0});
  EXPECT_LT(largest(system.next(around) - system.next(x)), 1e-12);
  const Tensor position = system.advance(x, system.next(x));
  EXPECT_TRUE(everywhere((position >= 0) & (position < 3.1415926536)));
}

}  // namespace lcp::training::systems_test
