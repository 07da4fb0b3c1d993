// A walk of a system allocates nothing per step or trajectory.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <string_view>
#include <vector>

#include "support/count_allocations.h"
#include "systems/adjoint.h"
#include "systems/simulator.h"

namespace lcp::systems {
namespace {

/// A system with the numbers of each trajectory, and the directions of its pairs.
struct Given {
  std::string_view name;
  std::vector<double> parameters, D, state;
};

void expect_no_allocations(const Given& given) {
  constexpr int kCount = 150;
  const System& system = *find_system(given.name);
  const auto n = static_cast<int>(given.D.size() / 2);
  solver::Settings settings;
  settings.tolerance = 1e-9;
  const auto shared = [](const std::vector<double>& of) { return BatchView<double>{of.data(), true}; };
  const std::vector<double> u(system.inputs);
  const Start<double> start = {shared(given.parameters), shared(given.D), shared(given.state), {u.data(), 0, true}};
  Simulator<double> simulator(system, n, settings);
  Adjoint<double> adjoint(system, n, Ties::kActive);
  const auto walk = [&](int count, int steps) {
    const std::int64_t all = std::int64_t{count} * steps;
    std::vector<double> x_next(system.states * all), z(n * all), w(n * all), residual(all);
    std::vector<double> of_parameters(system.parameters * count), of_x(system.states * count),
        of_u(system.inputs * all);
    std::vector<std::int8_t> status(all), states(n * all);
    const long before = testing::allocations();
    simulator.run(count, steps, start,
                  {x_next.data(), z.data(), w.data(), residual.data(), status.data(), states.data(), count});
    const lcs::StepsView<double> of_states = {x_next.data(), system.states * count, false},
                                 of_pairs = {z.data(), n * count, false};
    adjoint.run(count, steps, start,
                {of_states,
                 of_pairs,
                 {w.data(), n * count, false},
                 {status.data(), count, false},
                 {states.data(), n * count, false},
                 of_states,
                 of_pairs},
                {of_parameters.data(), of_x.data(), of_u.data(), count});
    const long allocated = testing::allocations() - before;
    for (const std::int8_t each : status) EXPECT_EQ(each, 0) << given.name;
    EXPECT_TRUE(std::isfinite(of_parameters[2]) && of_parameters[2] != 0) << given.name;
    return allocated;
  };
  walk(kCount, 2);  // makes the workspaces
  EXPECT_EQ(walk(kCount, 2), 0) << given.name;
  EXPECT_EQ(walk(kCount, 20), 0) << given.name;
}

TEST(SystemsAllocationTest, NothingIsAllocatedPerStepOrTrajectory) {
  const double half = std::sqrt(0.5);
  const std::vector<double> of_plane = {1, half, 0, -half, -1, -half, 0, half, 0, half, 1, half, 0, -half, -1, -half};
  expect_no_allocations({"planar_block_by_direction", {1.2, 0.02, 0.3, 9.81}, of_plane, {5, 1, 0, 0, 0, 0}});
  for (const double max_passes : {3., 100.}) {
    for (const double relaxed : {0., 1.}) {
      expect_no_allocations({"planar_block_by_fixed_point",
                             {1.2, 0.02, 0.3, 9.81, max_passes, 1e-12, relaxed},
                             of_plane,
                             {0.1, 0.02, 0, 0, 0, 0, 0, 0}});
    }
  }
  const std::vector<double> of_point = {0, 1, -1, 0, 1, 0, 0, 0};
  for (const char* const level : {"point_mass_at_positions", "point_mass_at_velocities"}) {
    expect_no_allocations({level, {1.2, 0.02, 0.3, 9.81, 0}, of_point, {0, 0, 5, -0.1}});
  }
  std::vector<double> of_tripod;
  for (const std::vector<double>& component : {std::vector<double>{1, 0, -1, 0}, {0, 1, 0, -1}}) {
    for (int support = 0; support < 3; ++support) of_tripod.insert(of_tripod.end(), component.begin(), component.end());
    of_tripod.insert(of_tripod.end(), 3, 0.);
  }
  const std::vector<double> supports = {0.045, 0, -0.03, 0.035, -0.03, -0.035};
  std::vector<double> parameters = {1, 2e-3, 0.01, 0.3, 9.81, 0.01}, state(15);
  parameters.insert(parameters.end(), supports.begin(), supports.end());
  state[2] = 0.3;
  state[3] = 3;
  state[4] = 1;
  state[5] = 40;
  expect_no_allocations({"tripod", parameters, of_tripod, state});
}

}  // namespace
}  // namespace lcp::systems
