#include "lcp/physics/direct_friction.h"

#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <utility>
#include <vector>

#include "lcp/physics/sliding_block.h"
#include "lcp/solve.h"
#include "support/finite_differences.h"
#include "support/tensors.h"

namespace lcp::physics::direct_friction_test {

using testing::count;
using testing::everywhere;
using testing::gradient_error;
using testing::Inputs;
using testing::largest;
using testing::numbers;
using torch::Tensor;

Tensor times(const Tensor& A, const Tensor& x) { return (A * x.unsqueeze(-2)).sum(-1); }

DirectFrictionStep step(const Tensor& J, const Tensor& inverse_mass, const Tensor& free, const Tensor& limit) {
  const Problem problem = direct_friction_problem(J, inverse_mass, free, limit);
  const SolveResult result = solve(problem.M, problem.q);
  EXPECT_EQ(count(result.status != 0), 0);
  return read_direct_friction(result.z, result.w, J, inverse_mass, free);
}

// A plank that moves across its length and turns, on three supports: three rows of rank 2.
struct Plank {
  Tensor J = numbers({1, -0.6, 1, 0.1, 1, 0.8}).view({3, 2});
  Tensor inverse_mass = numbers({0.5, 0, 0, 1.5}).view({2, 2});
  Tensor limit = numbers({0.3, 0.5, 0.2});
};

class DirectFrictionTest : public ::testing::Test {
 protected:
  void SetUp() override { torch::manual_seed(3); }
  Plank plank;
};

TEST_F(DirectFrictionTest, SatisfiesCoulombsLawAtDependentContacts) {
  const Tensor free = 0.6 * torch::randn({2000, 2}, torch::kDouble);
  const auto [v, slip, impulse] = step(plank.J, plank.inverse_mass, free, plank.limit);
  EXPECT_LT(largest(times(plank.J, v) - slip), 1e-14);  // the contacts move as the plank does
  EXPECT_LT(largest(v - free - times(plank.inverse_mass, times(plank.J.t(), impulse))), 1e-14);
  EXPECT_LE((impulse.abs() - plank.limit).max().item<double>(), 1e-14);
  EXPECT_LT(largest((impulse + plank.limit * slip.sign()) * (slip != 0)), 1e-14);
  // A plank of which one contact sticks pivots on it. Two hold it; the third one is at its limit.
  const Tensor sticking = (slip == 0).sum(-1);
  for (const int k : {0, 1, 2}) EXPECT_GT(count(sticking == k), 100) << k << " contacts stick";
}

// With the slack velocity of each contact [Notes, 2.6] the same motion takes nine unknowns.
TEST_F(DirectFrictionTest, AgreesWithTheTraditionalFormulation) {
  const Tensor free = 0.6 * torch::randn({500, 2}, torch::kDouble);
  const Tensor W = torch::matmul(torch::matmul(plank.J, plank.inverse_mass), plank.J.t());
  const Tensor one = torch::eye(3, torch::kDouble), zero = torch::zeros({3, 3}, torch::kDouble);
  const Tensor M =
      torch::cat({torch::cat({W, -W, one}, 1), torch::cat({-W, W, one}, 1), torch::cat({-one, -one, zero}, 1)});
  const Tensor slip = times(plank.J, free);
  const Tensor z = solve(M, torch::cat({slip, -slip, plank.limit.expand_as(slip)}, -1)).z;
  const Tensor v = free + times(plank.inverse_mass, times(plank.J.t(), z.slice(-1, 0, 3) - z.slice(-1, 3, 6)));
  EXPECT_LT(largest(step(plank.J, plank.inverse_mass, free, plank.limit).v_next - v), 1e-12);
}

TEST_F(DirectFrictionTest, OneContactIsTheDirectFormulation) {
  const SlidingBlock block = SlidingBlock::of(2, 0.1, 0.4, 9.81);
  const Tensor v = torch::randn({500}, torch::kDouble), u = 20 * torch::randn({500}, torch::kDouble);
  const auto solution = physics::step(v, u, block, SlidingBlockFormulation::kDirect);
  const auto contact = step(torch::ones({1, 1}, torch::kDouble), torch::full({1, 1}, 0.5, torch::kDouble),
                            (v + 0.05 * u).unsqueeze(-1), (0.1 * block.max_friction()).view({1}));
  EXPECT_LT(largest(contact.slip.squeeze(-1) - solution.step.v_next), 1e-14);
  EXPECT_TRUE(everywhere((contact.slip.squeeze(-1) == 0) == (solution.step.v_next == 0)));
}

// Supports of a block on a line: one motion, whatever their number and shares of the weight, and many forces.
TEST_F(DirectFrictionTest, SupportsOfOneBlockMoveAsOne) {
  const Tensor free = torch::randn({500, 1}, torch::kDouble), mass = torch::ones({1, 1}, torch::kDouble);
  for (const std::int64_t supports : {2, 3, 5}) {
    const Tensor share = torch::rand({supports}, torch::kDouble);
    const auto [v, slip, impulse] = step(torch::ones({supports, 1}, torch::kDouble), mass, free, share / share.sum());
    EXPECT_LT(largest(v - free.sign() * (free.abs() - 1).clamp_min(0)), 1e-14);
    EXPECT_LT(largest(slip - v), 1e-14);
    EXPECT_LT(largest(impulse.sum(-1, true) - (v - free)), 1e-14);
  }
}

// What the formulation avoids: the inverse of W, for which a pseudo-inverse is no substitute. It admits velocities of
// contacts that no motion of the plank has.
TEST_F(DirectFrictionTest, PseudoInverseTearsContactsApart) {
  const Tensor free = 0.6 * torch::randn({500, 2}, torch::kDouble);
  const Tensor W = torch::matmul(torch::matmul(plank.J, plank.inverse_mass), plank.J.t());
  const Tensor P = torch::linalg_pinv(W, 1e-10, true);
  const Tensor c = times(P, times(plank.J, free));
  const Tensor M = torch::cat({torch::cat({P, -P}, 1), torch::cat({-P, P}, 1)});
  const SolveResult result = solve(M, torch::cat({plank.limit - c, plank.limit + c}, -1));
  ASSERT_EQ(count(result.status != 0), 0);
  const Tensor slip = result.z.slice(-1, 0, 3) - result.z.slice(-1, 3);
  const Tensor motion = times(torch::linalg_pinv(plank.J, 1e-10, false), slip);
  EXPECT_GT(largest(times(plank.J, motion) - slip), 0.1);
}

TEST_F(DirectFrictionTest, GradientsAreThoseOfDifferences) {
  const auto f = [](const Inputs& x) {
    const DirectFrictionStep result = step(x[0], x[1], x[2], x[3]);
    return torch::cat({result.v_next, result.slip}, -1);
  };
  const std::vector<std::pair<Tensor, int>> cases = {
      {numbers({2, -1}), 0}, {numbers({0.3, 0.5}), 1}, {numbers({0.1, 0.05}), 2}};
  for (const auto& [free, sticking] : cases) {
    EXPECT_EQ(count(step(plank.J, plank.inverse_mass, free, plank.limit).slip == 0), sticking);
    EXPECT_LT(gradient_error(f, {plank.J, plank.inverse_mass, free, plank.limit}), 1e-7) << sticking;
  }
}

TEST_F(DirectFrictionTest, RefusesShapesThatDoNotFit) {
  const Tensor free = numbers({1, 0});
  EXPECT_THROW(direct_friction_problem(free, plank.inverse_mass, free, plank.limit), c10::Error);
  EXPECT_THROW(direct_friction_problem(plank.J, numbers({1}), free, plank.limit), c10::Error);
  EXPECT_THROW(direct_friction_problem(plank.J, plank.inverse_mass, plank.limit, plank.limit), c10::Error);
  EXPECT_THROW(direct_friction_problem(plank.J, plank.inverse_mass, free, free), c10::Error);
}

}  // namespace lcp::physics::direct_friction_test
