// A walk through time allocates nothing per step or trajectory, whether a kernel serves or not.
#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "lcs/adjoint.h"
#include "lcs/simulator.h"
#include "support/count_allocations.h"

namespace lcp::lcs {
namespace {

TEST(LcsAllocationTest, NothingIsAllocatedPerStepOrTrajectory) {
  constexpr int kCount = 700;
  solver::Settings settings;
  settings.tolerance = 1e-9;
  for (const int n : {1, 3, 4, 6, 9}) {
    const Size size = {2, 1, n};
    std::mt19937_64 random(7);
    std::normal_distribution<double> normal;
    const auto draw = [&](int count) {
      std::vector<double> x(count);
      for (double& value : x) value = 0.2 * normal(random);
      return x;
    };
    std::vector<double> M(n * n);
    for (int i = 0; i < n; ++i) M[i * n + i] = 1;
    const auto A = draw(4), B = draw(2), D = draw(2 * n), G = draw(2 * n), d = draw(2), E = draw(2 * n), H = draw(n),
               q = draw(n), x = draw(2);
    const auto shared = [](const std::vector<double>& of) { return BatchView<double>{of.data(), true}; };
    const System<double> system = {shared(A), shared(B), shared(D), shared(G), shared(d),
                                   shared(E), shared(H), shared(M), shared(q)};
    const Cone cone(n, -1);
    Simulator<double> simulator(size, cone, settings);
    Adjoint<double> adjoint(size, cone, Ties::kMidpoint);
    const auto walk = [&](int count, int steps) {
      const std::int64_t all = std::int64_t{count} * steps;
      std::vector<double> u(all), x_next(2 * all), z(n * all), w(n * all), residual(all), of_M(n * n * count);
      std::vector<std::int8_t> status(all), states(n * all);
      const long before = testing::allocations();
      simulator.run(count, steps, system, shared(x), {u.data(), count, false},
                    {x_next.data(), z.data(), w.data(), residual.data(), status.data(), states.data(), count});
      const StepsView<double> of_states = {x_next.data(), 2 * count, false}, of_pairs = {z.data(), n * count, false};
      adjoint.run(count, steps, system,
                  {shared(x),
                   {u.data(), count, false},
                   of_states,
                   of_pairs,
                   of_pairs,
                   {states.data(), n * count, false},
                   of_states,
                   of_pairs,
                   of_pairs},
                  {nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, of_M.data(), nullptr, nullptr,
                   nullptr, count});
      return testing::allocations() - before;
    };
    walk(kCount, 2);  // makes the workspaces
    EXPECT_EQ(walk(kCount, 2), 0) << n;
    EXPECT_EQ(walk(kCount, 50), 0) << n;
  }
}

}  // namespace
}  // namespace lcp::lcs
