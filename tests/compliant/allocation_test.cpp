// A walk of a body on compliant ground allocates nothing per step or trajectory.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "compliant/simulator.h"
#include "compliant/sweeps.h"
#include "support/count_allocations.h"

namespace lcp::compliant {
namespace {

TEST(CompliantAllocationTest, NothingIsAllocatedPerStepOrTrajectory) {
  constexpr int kSteps = 150;
  for (const Form form : {Form::kParticle, Form::kBlock}) {
    const bool is_block = form == Form::kBlock;
    const std::vector<double> parameters = is_block ? std::vector<double>{2, 0.6, 0.4, 9.81, 0.5, 1e4, 0.02}
                                                    : std::vector<double>{1, 9.81, 0.5, 1e4, 0.02};
    const std::vector<double> first = is_block ? std::vector<double>{0, 0.3, 0.2, 1, 0, 0.5}  // turns while it falls
                                               : std::vector<double>{0, 0, 0.1, 1, 0.5, 0},
                              u(3);
    const int rows = 3 * contacts_of(form);
    std::vector<double> next(6 * kSteps), gamma(rows * kSteps), y(rows * kSteps), of_u(3 * kSteps), of_first(6),
        of_parameters(parameters.size());
    const std::vector<double> ones(rows + 6, 1);
    std::vector<double> tangents(rows + 6);
    std::vector<std::int8_t> status(kSteps);
    std::vector<std::int64_t> iterations(kSteps);
    const Body body = {form, 0.01, 1e-3, 1};
    const Inputs inputs = {parameters.data(), first.data(), {u.data(), 0}};
    Simulator simulator(body, {1e-10, contact::kDefaultMaxIterations});
    LinearStep step(body);
    long forward = 0, backward = 0, along = 0;
    for (int run = 0; run < 2; ++run) {  // the first makes the tape long enough
      long before = testing::allocations();
      simulator.run(
          kSteps, inputs,
          {{next.data(), 6}, {gamma.data(), rows}, {y.data(), rows}, {status.data(), 1}, {iterations.data(), 1}});
      forward = testing::allocations() - before;
      before = testing::allocations();
      const WalkedPath walked = {{next.data(), 6}, {gamma.data(), rows}, {y.data(), rows}, {status.data(), 1}};
      adjoint(step, body, kSteps, inputs, walked, {ones.data(), 0}, {ones.data(), 0},
              {of_parameters.data(), of_first.data(), {of_u.data(), 3}});
      backward = testing::allocations() - before;
      before = testing::allocations();
      tangent(step, body, kSteps, inputs, walked, {ones.data(), ones.data(), {ones.data(), 0}}, {tangents.data(), 0},
              {tangents.data() + 6, 0});
      along = testing::allocations() - before;
    }
    EXPECT_EQ(forward, 0);
    EXPECT_EQ(backward, 0);
    EXPECT_EQ(along, 0);
    EXPECT_TRUE(std::all_of(status.begin(), status.end(), [](std::int8_t s) { return s == 0; }));
    EXPECT_TRUE(std::all_of(of_parameters.begin(), of_parameters.end(), [](double g) { return g != 0; }));
  }
}

}  // namespace
}  // namespace lcp::compliant
