#include <gtest/gtest.h>
#include <torch/autograd.h>
#include <torch/types.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "lcp/physics/tripod.h"
#include "support/finite_differences.h"
#include "support/tensors.h"
#include "tripod_blocks.h"

namespace lcp::physics::tripod_test {

using testing::everywhere;
using testing::Inputs;
using testing::largest;
using testing::number;
using testing::numbers;
using torch::Tensor;
using List = std::vector<std::int64_t>;

TEST_F(TripodTest, TakesParametersOfEachElement) {
  Tripod tripod = block();
  tripod.mass = torch::rand({4, 1}, torch::kDouble) + 0.5;
  tripod.mu = torch::rand({3}, torch::kDouble) * 0.5;
  tripod.supports = tripod.supports + torch::randn({4, 3, 3, 2}, torch::kDouble) * 0.003;
  tripod.com_height = torch::rand({3}, torch::kDouble) * 0.02;
  tripod.inertia = torch::rand({4, 3}, torch::kDouble) * 1e-3 + 1e-3;
  const TripodState state{torch::randn({4, 3, 3}, torch::kDouble), torch::randn({4, 3, 3}, torch::kDouble)};
  const Tensor u = torch::randn({5, 4, 3, 3}, torch::kDouble) * 0.1;
  const auto rollout = simulate(state, u, tripod);
  const TripodState exact = exact_step(state, u[0], tripod);
  for (int i = 0; i < 4; ++i) {
    for (int j = 0; j < 3; ++j) {
      const Tripod own{tripod.mass[i][0], tripod.inertia[i][j],  tripod.dt,           tripod.mu[j],
                       tripod.gravity,    tripod.supports[i][j], tripod.com_height[j]};
      const TripodState from{state.pose[i][j], state.velocity[i][j]};
      const auto alone = simulate(from, u.select(1, i).select(1, j), own);
      const auto mine = [&](const Tensor& x) { return x.select(1, i).select(1, j); };
      EXPECT_LT(largest(mine(rollout.step.next.velocity) - alone.step.next.velocity), 1e-11);
      EXPECT_LT(largest(mine(rollout.step.normal) - alone.step.normal), 1e-11);
      EXPECT_LT(largest(exact.velocity[i][j] - exact_step(from, u[0][i][j], own).velocity), 1e-12);
    }
  }
}

TEST_F(TripodTest, BroadcastsStateInputsAndParameters) {
  // As many parameters as steps: a wrong alignment would go unnoticed by its shape.
  const std::int64_t b = 5;
  Tripod tripod = block();
  tripod.mu = torch::rand({b}, torch::kDouble) * 0.5;
  const TripodState state = launched();
  const TripodState wide_state{state.pose.expand({b, 3}), state.velocity.expand({b, 3})};
  const Tensor u = torch::randn({b, 3}, torch::kDouble) * numbers({200, 200, 10});
  const Tensor wide_u = u.unsqueeze(1).expand({b, b, 3});
  const auto wide = simulate(wide_state, wide_u, tripod);
  const auto wide_kinks = certify_rollout(wide_state, wide_u, tripod, 8, wide);
  for (const auto& [some_state, some_u] : std::vector<std::pair<TripodState, Tensor>>{
           {state, wide_u}, {wide_state, u}, {state, u}, {{state.pose, wide_state.velocity}, wide_u}}) {
    const auto rollout = simulate(some_state, some_u, tripod);
    EXPECT_LT(largest(rollout.step.next.pose - wide.step.next.pose), 1e-12);
    EXPECT_LT(largest(rollout.step.next.velocity - wide.step.next.velocity), 1e-11);
    EXPECT_TRUE(torch::equal(certify_rollout(some_state, some_u, tripod, 8, rollout).kinked, wide_kinks.kinked));
  }
}

TEST_F(TripodTest, KeepsThePrecisionOfItsState) {
  const Tripod tripod = block();
  const TripodState state = random_states(60, tripod);
  const TripodState single{state.pose.to(torch::kFloat), state.velocity.to(torch::kFloat)};
  const Tensor u = torch::randn({60, 3}, torch::kDouble) * numbers({1, 1, 0.02});
  const auto exact = step(state, u, tripod);
  for (const Tensor& some_u : {u, u.to(torch::kFloat)}) {
    const auto solution = step(single, some_u, tripod);
    EXPECT_TRUE((solution.status == 0).all().item<bool>());
    for (const Tensor& x : {solution.step.next.pose, solution.step.next.velocity, solution.step.friction,
                            solution.step.normal, solution.step.slip, solution.z, solution.residual}) {
      EXPECT_EQ(x.scalar_type(), torch::kFloat);
    }
    EXPECT_LT(largest((solution.step.next.velocity - exact.step.next.velocity) * numbers({1, 1, 0.05})), 1e-4);
  }
  EXPECT_EQ(step(state, u.to(torch::kFloat), tripod).step.next.velocity.scalar_type(), torch::kDouble);
}

TEST_F(TripodTest, StepsAnEmptyBatch) {
  const Tensor nothing = torch::zeros({0, 3}, torch::kDouble);
  const Tensor u = torch::zeros({3, 0, 3}, torch::kDouble);
  const auto rollout = simulate({nothing, nothing}, u, block());
  EXPECT_EQ(rollout.step.next.pose.sizes(), (List{3, 0, 3}));
  EXPECT_EQ(rollout.step.friction.sizes(), (List{3, 0, 3, 2}));
  EXPECT_EQ(certify_rollout({nothing, nothing}, u, block(), 8, rollout).kinked.sizes(), (List{0}));
  EXPECT_EQ(exact_step({nothing, nothing}, nothing, block()).velocity.sizes(), (List{0, 3}));
}

TEST_F(TripodTest, LeavesTheNeighboursOfABrokenElementAlone) {
  const TripodState good = random_states(5, block());
  const Tensor good_u = torch::randn({3, 5, 3}, torch::kDouble) * numbers({1, 1, 0.02});
  const Tensor others = torch::tensor({0, 1, 3, 4});
  const auto run = [&](const TripodState& state, const Tensor& u, double inertia, double mass) {
    Tensor inertias = torch::full({5}, 0.002, torch::kDouble);
    inertias[2] = inertia;
    Tensor masses = torch::full({5}, 1.3, torch::kDouble);
    masses[2] = mass;
    const Inputs in{state.pose.clone().requires_grad_(), state.velocity.clone().requires_grad_(),
                    u.clone().requires_grad_(),          masses.requires_grad_(),
                    inertias.requires_grad_(),           torch::full({5}, 0.3, torch::kDouble).requires_grad_()};
    const Tripod tripod{in[3], in[4], number(0.005), in[5], number(9.81), block().supports, number(0.01)};
    const auto rollout = simulate({in[0], in[1]}, in[2], tripod, 6);
    const Tensor healthy = (rollout.status == 0).unsqueeze(-1);
    const Tensor loss = torch::where(healthy, rollout.step.next.pose, 0).square().sum() +
                        torch::where(healthy, rollout.step.next.velocity, 0).square().sum();
    Inputs seen = torch::autograd::grad({loss}, in);
    seen[2] = seen[2].transpose(0, 1);
    for (const Tensor& x : {rollout.step.next.pose, rollout.step.next.velocity, rollout.z, rollout.status}) {
      seen.push_back(x.transpose(0, 1));
    }
    for (Tensor& x : seen) x = x.index_select(0, others);
    seen.push_back((rollout.status != 0).sum(0)[2]);
    return seen;
  };
  TripodState slow{good.pose, good.velocity.clone()};
  slow.velocity[2][1] = NAN;
  TripodState turned{good.pose.clone(), good.velocity};
  turned.pose[2][2] = NAN;
  Tensor bad_u = good_u.clone();
  bad_u[1][2][0] = NAN;
  const Inputs healthy = run(good, good_u, 0.002, 1.3);
  const auto same_beside = [&](const Inputs& seen, std::int64_t unsolved) {
    for (std::size_t i = 0; i + 1 < healthy.size(); ++i) EXPECT_TRUE(torch::equal(seen[i], healthy[i])) << i;
    EXPECT_EQ(seen.back().item<std::int64_t>(), unsolved);
  };
  same_beside(run(slow, good_u, 0.002, 1.3), 3);
  same_beside(run(turned, good_u, 0.002, 1.3), 3);
  same_beside(run(good, bad_u, 0.002, 1.3), 2);
  same_beside(run(good, good_u, NAN, 1.3), 3);
  ASSERT_NO_THROW(run(good, good_u, 0.002, NAN));
  same_beside(run(good, good_u, 0.002, NAN), 3);
}

TEST_F(TripodTest, HasAGradientOfABrokenElementThatIsZeroIfItIsLeftOutElseNaN) {
  TripodState state = random_states(3, block());
  Tensor u = torch::zeros({2, 3, 3}, torch::kDouble);
  state.pose[1][2] = NAN;
  u[1][2][0] = NAN;
  const Inputs in{state.pose.requires_grad_(), state.velocity.requires_grad_(), u.requires_grad_()};
  const auto rollout = simulate({in[0], in[1]}, in[2], block(), 6);
  const Tensor v = rollout.step.next.velocity.sum(-1);
  const auto whole = torch::autograd::grad({v.sum()}, in, {}, /*retain_graph=*/true);
  const auto masked = torch::autograd::grad({torch::where(rollout.status == 0, v, 0).sum()}, in);
  for (const std::size_t k : {0, 1}) {
    EXPECT_TRUE(everywhere(whole[k][1].isnan()) && everywhere(masked[k][1] == 0)) << k;
    EXPECT_TRUE(torch::equal(whole[k][0], masked[k][0]) && everywhere(masked[k][2].isfinite())) << k;
  }
  EXPECT_TRUE(everywhere(whole[2][1][2].isnan()) && everywhere(masked[2][1][2] == 0));
}

TEST_F(TripodTest, KeepsABrokenElementOutOfTheGradientOfSharedParameters) {
  const TripodState state = random_states(5, block());
  const Tensor u = torch::randn({3, 5, 3}, torch::kDouble) * numbers({1, 1, 0.02});
  const Tensor others = torch::tensor({0, 1, 3, 4});
  const auto slopes_of = [&](const Tensor& pose, const Tensor& velocity, const Tensor& by) {
    const Inputs in{number(1.3).requires_grad_(), number(0.002).requires_grad_(), number(0.005).requires_grad_(),
                    number(0.3).requires_grad_(), number(9.81).requires_grad_(),  number(0.01).requires_grad_()};
    const Tripod tripod{in[0], in[1], in[2], in[3], in[4], block().supports, in[5]};
    const auto rollout = simulate({pose, velocity}, by, tripod, 6);
    const Tensor healthy = (rollout.status == 0).all(0).unsqueeze(-1);
    return torch::stack(torch::autograd::grad({torch::where(healthy, rollout.step.next.pose, 0).square().sum()}, in));
  };
  const Tensor expected =
      slopes_of(state.pose.index_select(0, others), state.velocity.index_select(0, others), u.index_select(1, others));
  const auto relative = [&](const Tensor& x) { return largest(x / expected - 1); };
  Tensor fast = state.velocity.clone();
  fast[2][1] = NAN;
  Tensor turned = state.pose.clone();
  turned[2][2] = NAN;
  Tensor pushed = u.clone();
  pushed[1][2][0] = NAN;
  EXPECT_LT(relative(slopes_of(state.pose, fast, u)), 1e-10);
  EXPECT_LT(relative(slopes_of(turned, state.velocity, u)), 1e-10);
  EXPECT_LT(relative(slopes_of(state.pose, state.velocity, pushed)), 1e-10);
}

TEST_F(TripodTest, GivesTheSameBitsInEveryBatch) {
  const Tripod tripod = block(0.01);
  const TripodState state = random_states(37, tripod);
  const Tensor u = torch::randn({37, 3}, torch::kDouble) * numbers({1, 1, 0.02});
  for (const int n : {4, 8}) {
    const auto all = step(state, u, tripod, n);
    for (const int width : {1, 5, 36}) {
      bool same = true;
      for (int from = 0; from < 37; from += width) {
        const auto cut = [&](const Tensor& x) { return x.slice(0, from, std::min(from + width, 37)); };
        const auto part = step({cut(state.pose), cut(state.velocity)}, cut(u), tripod, n);
        same = same && torch::equal(part.step.next.velocity, cut(all.step.next.velocity)) &&
               torch::equal(part.z, cut(all.z));
      }
      EXPECT_TRUE(same) << n << " " << width;
    }
  }
}

TEST_F(TripodTest, RefusesImpossibleArguments) {
  for (const int n : {-2, 0, 2, 3, 7}) {
    EXPECT_THROW(step(launched(), none(1)[0], block(), n), c10::Error);
    EXPECT_THROW(simulate(launched(), none(1), block(), n), c10::Error);
    EXPECT_THROW(polyhedral_problem(launched(), none(1)[0], block(), n), c10::Error);
  }
  EXPECT_THROW(simulate(launched(), none(1)[0], block()), c10::Error);
  EXPECT_THROW(simulate(launched(), none(0), block()), c10::Error);
  EXPECT_THROW(Tripod::of(0, 1, 0.1, 0.3, 9.81), c10::Error);
  EXPECT_THROW(Tripod::of(1, 0, 0.1, 0.3, 9.81), c10::Error);
  EXPECT_THROW(Tripod::of(1, 1, 0, 0.3, 9.81), c10::Error);
  EXPECT_THROW(Tripod::of(1, 1, 0.1, -0.3, 9.81), c10::Error);
  EXPECT_THROW(Tripod::of(1, 1, 0.1, 0.3, -9.81), c10::Error);
  EXPECT_THROW(Tripod::of(1, 1, 0.1, 0.3, 9.81, -0.01), c10::Error);
  EXPECT_THROW(Tripod::of(1, 1, 0.1, 0.3, 9.81, INFINITY), c10::Error);
}

}  // namespace lcp::physics::tripod_test
