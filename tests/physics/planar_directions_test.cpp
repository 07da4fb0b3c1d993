// Friction cones of other directions than those of a regular polygon.
#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <cmath>
#include <utility>
#include <vector>

#include "lcp/physics/friction_cone.h"
#include "lcp/physics/planar_block.h"
#include "support/finite_differences.h"
#include "support/tensors.h"

namespace lcp::physics::planar_directions_test {

using testing::count;
using testing::everywhere;
using testing::gradient_error;
using testing::Inputs;
using testing::largest;
using testing::numbers;
using torch::Tensor;

class PlanarDirectionsTest : public ::testing::Test {
 protected:
  PlanarDirectionsTest() {
    torch::manual_seed(4);
    v = torch::randn({500, 2}, torch::kDouble);
    u = 2 * torch::randn({500, 2}, torch::kDouble);
  }

  PlanarBlockStep step(const Tensor& D) const { return step(v, u, D); }
  PlanarBlockStep step(const Tensor& from, const Tensor& force, const Tensor& D) const {
    const Problem problem = polyhedral_problem(from, force, block, D);
    const SolveResult result = solve(problem.M, problem.q);
    EXPECT_EQ(count(result.status != 0), 0);
    return read_polyhedral(result.z, result.w, from, force, block, D);
  }

  const PlanarBlock block = PlanarBlock::of(2, 0.5, 0.4, 9.81);
  Tensor v, u;
};

TEST_F(PlanarDirectionsTest, OfARegularPolygonAreThePolyhedralCone) {
  const Tensor D = friction_directions(6, torch::kDouble);
  const Problem problem = polyhedral_problem(v, u, block, D), regular = polyhedral_problem(v, u, block, 6);
  EXPECT_LT(largest(problem.M - regular.M), 1e-15);
  EXPECT_LT(largest(problem.q - regular.q), 1e-15);
  PlanarBlockOptions options;
  options.formulation = PlanarBlockFormulation::kPolyhedral;
  options.directions = 6;
  const Tensor expected = physics::step(v, u, block, options).step.v_next, v_next = step(D).v_next;
  EXPECT_LT(largest(v_next - expected), 1e-14);
  EXPECT_TRUE(torch::equal((v_next == 0).all(-1), (expected == 0).all(-1)));
  EXPECT_GT(count((v_next == 0).all(-1)), 50);
}

// Friction does as much work as it can: no force within the hull of the directions would take more energy.
TEST_F(PlanarDirectionsTest, OfAnyLengthsGiveTheForceOfLargestDissipation) {
  const Tensor D = torch::randn({7, 1, 2, 5}, torch::kDouble);
  const auto [v_next, force] = step(D);
  const Tensor limit = block.mu * block.mass * block.gravity;
  const Tensor power = (force * v_next).sum(-1),
               most = limit * (v_next.unsqueeze(-1) * D).sum(-2).amin(-1).clamp_max(0);
  EXPECT_LT(largest(power - most), 1e-12);
}

TEST_F(PlanarDirectionsTest, AlignedWithTheFreeVelocityAreExact) {
  const Tensor free = v + block.dt / block.mass * u;
  const Tensor D = aligned_directions(free, torch::zeros({2}, torch::kDouble));
  const PlanarBlockStep exact = exact_step(v, u, block), aligned = step(D);
  EXPECT_LT(largest(aligned.v_next - exact.v_next), 1e-14);
  EXPECT_TRUE(torch::equal(aligned.v_next == 0, exact.v_next == 0));
}

TEST_F(PlanarDirectionsTest, AreAlignedWithTwoVectors) {
  const Tensor zero = numbers({0, 0}), x = numbers({3, 0}), y = numbers({0, -2}), oblique = numbers({-1, 1});
  const double r = std::sqrt(0.5);
  EXPECT_LT(largest(aligned_directions(x, oblique) - numbers({1, -r, -1, r, 0, r, 0, -r}).view({2, 4})), 1e-15);
  EXPECT_LT(largest(aligned_directions(x, zero) - numbers({1, 0, -1, 0, 0, 1, 0, -1}).view({2, 4})), 1e-15);
  EXPECT_LT(largest(aligned_directions(x, -x) - numbers({1, 0, -1, 0, 0, 1, 0, -1}).view({2, 4})), 1e-15);
  EXPECT_LT(largest(aligned_directions(zero, y) - numbers({-1, 0, 1, 0, 0, -1, 0, 1}).view({2, 4})), 1e-15);
  EXPECT_LT(largest(aligned_directions(zero, zero) - numbers({1, 0, -1, 0, 0, 1, 0, -1}).view({2, 4})), 1e-15);
}

TEST_F(PlanarDirectionsTest, SpanThePlaneOrNot) {
  EXPECT_TRUE(everywhere(span_plane(friction_directions(4, torch::kDouble))));
  EXPECT_TRUE(everywhere(span_plane(numbers({1, -1, -1, 0, 0.5, -0.5}).view({2, 3}))));
  EXPECT_FALSE(everywhere(span_plane(numbers({1, -1, 0, 0, 0, 1}).view({2, 3}))));  // nothing holds against -y
  EXPECT_FALSE(everywhere(span_plane(numbers({1, 0, 0, 1}).view({2, 2}))));
  EXPECT_EQ(span_plane(torch::randn({7, 1, 2, 5}, torch::kDouble)).sizes(), (std::vector<std::int64_t>{7, 1}));
}

// A block slides freely where no direction holds it, although the slack velocity is 0.
TEST_F(PlanarDirectionsTest, HoldOnlyWhatTheySpan) {
  const Tensor D = numbers({1, -1, 0, 0, 0, 1}).view({2, 3});
  EXPECT_LT(largest(step(numbers({0, 1}), numbers({1, 0}), D).v_next - numbers({0, 1})), 1e-15);
}

TEST_F(PlanarDirectionsTest, HaveTheGradientOfCentralDifferences) {
  const Tensor D = numbers({1, 0.2, -0.9, -0.3, 0.1, 1.2, 0.2, -0.8}).view({2, 4});
  const auto f = [&](const Inputs& x) { return step(x[0], x[1], x[2]).v_next; };
  // At a vertex of the hull, between two, and where the block sticks.
  const std::vector<std::pair<Tensor, bool>> cases = {
      {numbers({3, 0.2}), false}, {numbers({2.2, 2.0}), false}, {numbers({0.3, 0.4}), true}};
  for (const auto& [from, sticks] : cases) {
    EXPECT_EQ(everywhere(step(from, numbers({0.3, -0.2}), D).v_next == 0), sticks);
    EXPECT_LT(gradient_error(f, {from, numbers({0.3, -0.2}), D}), 1e-7);
  }
}

TEST_F(PlanarDirectionsTest, MustBeVectorsOfThePlane) {
  EXPECT_THROW(polyhedral_problem(v, u, block, torch::zeros({3, 4}, torch::kDouble)), c10::Error);
  EXPECT_THROW(polyhedral_problem(v, u, block, torch::zeros({2, 0}, torch::kDouble)), c10::Error);
}

}  // namespace lcp::physics::planar_directions_test
