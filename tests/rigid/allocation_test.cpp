// A walk of rigid bodies allocates nothing per step or trajectory.
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "rigid/adjoint.h"
#include "rigid/simulator.h"
#include "support/count_allocations.h"

namespace lcp::rigid {
namespace {

// A cube of 1 kg and 10 cm on the plane z = 0.
struct Cube {
  std::vector<double> mass = {1}, inertia = {1. / 600, 0, 0, 0, 1. / 600, 0, 0, 0, 1. / 600}, centers,
                      radii = std::vector<double>(8), normals = {0, 0, 1}, offsets = {0}, gravity = {0, 0, -9.81},
                      mu = std::vector<double>(8, 0.3), restitution = std::vector<double>(8, 0.2);
  std::vector<double> position = {0, 0, 0.12}, orientation = {0.8, 0.3, -0.4, 0.2}, velocity = {0.5, -0.3, -0.6},
                      angular_velocity = {2, -1, 3};
  Scene scene = {1, 8, 1, {}, 0.005, {}, 1};

  Cube() {
    for (int k = 0; k < 8; ++k) {
      for (const int bit : {1, 2, 4}) centers.push_back((k & bit) != 0 ? 0.05 : -0.05);
      scene.pairs.push_back({0, k, Pair::kWorld, 0, -1});
    }
  }

  Parameters<const double> parameters() const {
    return {mass.data(),    inertia.data(), centers.data(), radii.data(),      normals.data(),
            offsets.data(), gravity.data(), mu.data(),      restitution.data()};
  }
  State<const double> state() const {
    return {position.data(), orientation.data(), velocity.data(), angular_velocity.data()};
  }
};

template <class Number>
Path<const double> constant(const Path<Number>& path) {
  const auto of = [](const Series<Number>& series) { return Series<const double>{series.data, series.stride}; };
  return {of(path.position), of(path.orientation), of(path.velocity), of(path.angular_velocity), of(path.gamma)};
}

TEST(RigidAllocationTest, NothingIsAllocatedPerStepOrTrajectory) {
  constexpr int kSteps = 200;
  const Cube cube;
  std::vector<double> u(6), position(3 * kSteps), orientation(4 * kSteps), velocity(3 * kSteps), turning(3 * kSteps),
      gamma(24 * kSteps), ones(24, 1.0), of_mass(1), of_inertia(9), of_centers(24), of_radii(8), of_normals(3),
      of_offsets(1), of_gravity(3), of_mu(8), of_restitution(8), of_first(13), of_u(6 * kSteps);
  const auto chosen = std::make_unique<bool[]>(8 * kSteps);
  std::vector<std::int8_t> status(kSteps);
  std::vector<std::int64_t> iterations(kSteps);
  const Path<double> path = {
      {position.data(), 3}, {orientation.data(), 4}, {velocity.data(), 3}, {turning.data(), 3}, {gamma.data(), 24}};
  const Series<const double> one = {ones.data(), 0};
  const WalkedPath walked = {cube.state(),      {u.data(), 0},      constant(path),
                             {chosen.get(), 8}, {status.data(), 1}, {one, one, one, one, one}};
  const Gradients to = {{of_mass.data(), of_inertia.data(), of_centers.data(), of_radii.data(), of_normals.data(),
                         of_offsets.data(), of_gravity.data(), of_mu.data(), of_restitution.data()},
                        {of_first.data(), of_first.data() + 3, of_first.data() + 7, of_first.data() + 10},
                        {of_u.data(), 6}};
  Simulator simulator(cube.scene, 1e-9);
  Adjoint adjoint(cube.scene, 1e-11);
  const auto walk = [&] {
    const long before = testing::allocations();
    simulator.run(kSteps, cube.parameters(), cube.state(), {u.data(), 0}, path,
                  {{chosen.get(), 8}, {status.data(), 1}, {iterations.data(), 1}});
    const long between = testing::allocations();
    adjoint.run(kSteps, cube.parameters(), walked, to);
    return std::vector<long>{between - before, testing::allocations() - between};
  };
  walk();  // makes the workspaces
  for (const std::int8_t each : status) ASSERT_EQ(each, 0);
  EXPECT_EQ(walk(), std::vector<long>(2, 0));
}

}  // namespace
}  // namespace lcp::rigid
