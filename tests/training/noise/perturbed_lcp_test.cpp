#include "noise/perturbed_lcp.h"

#include <gtest/gtest.h>
#include <torch/autograd.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "lcp/physics/sliding_block.h"
#include "lcp/solve.h"
#include "support/errors.h"
#include "support/finite_differences.h"
#include "support/tensors.h"

namespace lcp::training::perturbed_lcp_test {

using testing::count;
using testing::error_of;
using testing::everywhere;
using testing::gradient_error;
using testing::Inputs;
using testing::largest;
using testing::number;
using testing::numbers;
using torch::Tensor;

constexpr std::int64_t kDraws = 10'000;

Tensor normal(const std::vector<std::int64_t>& shape) { return torch::randn(shape, torch::kDouble); }

// dt = m = mu = g = 1.
Tensor friction_matrix() { return numbers({1, -1, 1, -1, 1, 1, -1, -1, 0}).view({3, 3}); }
Tensor friction_vector(const Tensor& free) { return torch::stack({free, -free, torch::ones_like(free)}, -1); }

Tensor force(const Tensor& z) { return z.select(-1, 0) - z.select(-1, 1); }

SolveResult lemke(const Tensor& M, const Tensor& q) {
  SolveOptions options;
  options.method = "lemke";
  return solve(M, q, options);
}

Tensor velocity(const Tensor& M, const Tensor& q, const Tensor& free) { return free + force(lemke(M, q).z); }

double fraction(const Tensor& mask) { return mask.to(torch::kDouble).mean().item<double>(); }

class PerturbedLcpTest : public ::testing::Test {
 protected:
  void SetUp() override { torch::manual_seed(5); }
};

// all_solutions

TEST_F(PerturbedLcpTest, FindsEverySolutionOfAKnownProblem) {
  // [1 2; 2 1] z - (1, 1): (1, 0), (0, 1) and (1/3, 1/3).
  const Solutions all = all_solutions(numbers({1, 2, 2, 1}).view({2, 2}), numbers({-1, -1}));
  EXPECT_TRUE(torch::equal(all.found, torch::tensor({false, true, true, true})));
  EXPECT_LT(largest(all.z.slice(0, 1) - numbers({1, 0, 0, 1, 1. / 3, 1. / 3}).view({3, 2})), 1e-15);
}

TEST_F(PerturbedLcpTest, FindsSolutionsAndNoOthers) {
  for (const std::int64_t n : {1, 2, 4}) {
    const Tensor M = normal({300, n, n}), q = normal({300, n});
    const Solutions all = all_solutions(M, q);
    const Tensor w = (M * all.z.unsqueeze(-2)).sum(-1) + q;
    EXPECT_LT(largest(torch::minimum(all.z, w).index({all.found})), 1e-8);
    // lcp::solve finds one of them, and says so where there is none. A P-matrix has exactly one.
    const SolveResult solved = solve(M, q);
    EXPECT_TRUE(torch::equal(solved.status == 0, all.found.any(0)));
    const Tensor distance = (all.z - solved.z).abs().amax(-1).masked_fill(~all.found, INFINITY).amin(0);
    EXPECT_LT(largest((distance / (1 + solved.z.abs().amax(-1))).index({solved.status == 0})), 1e-9);
    const Tensor P = torch::matmul(M, M.mT()) + 0.1 * torch::eye(n, torch::kDouble);
    EXPECT_TRUE(everywhere(all_solutions(P, q).found.sum(0) == 1));
    if (n > 1) {
      EXPECT_GT(all.found.sum(0).max().item<std::int64_t>(), 1);
    }
  }
}

TEST_F(PerturbedLcpTest, CountsOneSolutionOfManyBasesOnce) {
  const Solutions all = all_solutions(torch::eye(3, torch::kDouble), numbers({0, -2, 0}));
  EXPECT_EQ(count(all.found), 1);
  EXPECT_TRUE(torch::equal(all.z[2], numbers({0, 2, 0})) && all.found[2].item<bool>());
  EXPECT_EQ(count(all_solutions(torch::zeros({3, 3}), torch::ones({3})).found), 1);  // all bases but one are singular
}

TEST_F(PerturbedLcpTest, BroadcastsAndKeepsItsPrecision) {
  const Tensor M = normal({4, 1, 2, 2}), q = normal({5, 2});
  for (const auto dtype : {torch::kDouble, torch::kFloat}) {
    const Solutions all = all_solutions(M.to(dtype), q.to(dtype));
    EXPECT_EQ(all.z.sizes(), (std::vector<std::int64_t>{4, 4, 5, 2}));
    EXPECT_EQ(all.found.sizes(), (std::vector<std::int64_t>{4, 4, 5}));
    EXPECT_EQ(all.z.scalar_type(), dtype);
    const Solutions one = all_solutions(M[2][0].to(dtype), q[3].to(dtype));
    EXPECT_TRUE(torch::equal(one.z, all.z.select(1, 2).select(1, 3)));
    EXPECT_TRUE(torch::equal(one.found, all.found.select(1, 2).select(1, 3)));
  }
  const Tensor broken = torch::stack({q[0], q[1] * NAN, q[2]});
  EXPECT_EQ(count(all_solutions(M[0], broken).found.select(1, 1)), 0);
}

TEST_F(PerturbedLcpTest, RefusesWhatDoesNotFit) {
  const auto zeros = [](const std::vector<std::int64_t>& shape) { return torch::zeros(shape); };
  EXPECT_EQ(error_of([&] { all_solutions(zeros({3, 2}), zeros({3})); }), "M must be [..., n, n]; got [3, 2]");
  EXPECT_EQ(error_of([&] { all_solutions(zeros({11, 11}), zeros({11})); }), "n must be from 1 to 10; got 11");
  EXPECT_EQ(error_of([&] { all_solutions(zeros({3, 3}), zeros({2})); }), "q must be [..., n] with n = 3; got [2]");
  EXPECT_EQ(error_of([&] {
              all_solutions(zeros({3, 3}), zeros({3}).to(torch::kDouble));
            }),
            "M and q must both be float64 or float32; got Float and Double");
  EXPECT_EQ(error_of([&] { biased_friction(zeros({2}), zeros({})); }), "q must be [..., 3]; got [2]");
}

// biased_friction

TEST_F(PerturbedLcpTest, HasAClosedFormForAnyVector) {
  const physics::SlidingBlock block{0.5 + torch::rand({kDraws}, torch::kDouble), number(0.3), number(1), number(1)};
  const Tensor c = block.dt / block.mass;
  const Tensor M = physics::traditional_problem(number(0), number(0), block).M;
  for (const double bias : {0., 0.1, 1.}) {
    const Tensor free = normal({kDraws}), limit = torch::rand({kDraws}, torch::kDouble) + 0.01;
    const Tensor q = torch::stack({free, -free, limit}, -1) +
                     bias * torch::stack({normal({kDraws}), normal({kDraws}), torch::zeros({kDraws})}, -1);
    const SolveResult solved = lemke(M, q);
    const BiasedFriction closed = biased_friction(q, c);
    ASSERT_TRUE(everywhere(solved.status == 0));
    EXPECT_LT(largest(c * (closed.force - force(solved.z))), 1e-12);
    EXPECT_LT(largest(closed.gamma - solved.z.select(-1, 2)), 1e-12);
  }
}

TEST_F(PerturbedLcpTest, SaysWhereNoForceIsAllowedAndWhereNoneIsLeft) {
  const BiasedFriction closed = biased_friction(numbers({1, -1, -0.5, 0, 0, -0.5, 2, -1, 0}).view({3, 3}), number(1));
  EXPECT_TRUE(everywhere(closed.force.slice(0, 0, 2).isnan()) && everywhere(closed.gamma.slice(0, 0, 2).isnan()));
  EXPECT_EQ(closed.force[2].item<double>(), 0);  // no friction
  EXPECT_EQ(closed.gamma[2].item<double>(), 1);  // (q_1 - q_2) / 2 - (q_1 + q_2) / 2
  const Tensor c = number(1).requires_grad_();
  const BiasedFriction shared = biased_friction(numbers({1, -1, -0.5, 0.3, -0.3, 1}).view({2, 3}), c);
  const Tensor sum = (shared.force + shared.gamma)[1];
  EXPECT_NEAR(torch::autograd::grad({sum}, {c})[0].item<double>(), 0.3, 1e-15);  // force = -v* / c
}

TEST_F(PerturbedLcpTest, TheClosedFormHasTheGradientOfTheSolution) {
  const Tensor free = normal({50});
  const Tensor q = friction_vector(free) + 0.3 * normal({50, 3}), c = 0.5 + torch::rand({50}, torch::kDouble);
  const auto f = [](const Inputs& in) {
    const BiasedFriction closed = biased_friction(in[0], in[1]);
    return torch::stack({closed.force, closed.gamma});
  };
  EXPECT_LT(gradient_error(f, {q, c}), 1e-7);
}

TEST_F(PerturbedLcpTest, TheClosedFormHasTheGradientOfLcpSolveWhereNothingIsWrong) {
  const Tensor free = numbers({-2, -0.7, -0.2, 0, 0.4, 0.9, 3});  // some slide, some stick
  const auto gradient = [&](const auto& f) {
    const Tensor q = friction_vector(free).requires_grad_();
    return torch::autograd::grad({f(q).sum()}, {q})[0];
  };
  const Tensor expected[] = {gradient([](const Tensor& q) { return force(lemke(friction_matrix(), q).z); }),
                             gradient([](const Tensor& q) { return lemke(friction_matrix(), q).z.select(-1, 2); })};
  EXPECT_LT(largest(gradient([](const Tensor& q) { return biased_friction(q, number(1)).force; }) - expected[0]),
            1e-15);
  EXPECT_LT(largest(gradient([](const Tensor& q) { return biased_friction(q, number(1)).gamma; }) - expected[1]),
            1e-15);
}

// [Notes, 3.2.1]

TEST_F(PerturbedLcpTest, ASmallNegativeErrorInOneEntryMovesARestingBlock) {
  for (const double error : {1e-6, 1e-3, 0.01, 0.1, 0.5}) {
    const Tensor q = numbers({-error, 0, 1});
    const Tensor expected = numbers({(1 + error / 2) / 2, (1 - error / 2) / 2, error / 2});
    const Solutions all = all_solutions(friction_matrix(), q);
    ASSERT_EQ(count(all.found), 1);
    EXPECT_LT(largest(all.z.index({all.found}) - expected), 1e-15);
    EXPECT_LT(largest(lemke(friction_matrix(), q).z - expected), 1e-15);
    EXPECT_EQ(largest(lemke(friction_matrix(), -q.abs() + numbers({2 * error, 0, 2})).z), 0);  // of the other sign
    // lambda_plus = mu m g with lambda_minus = 0 has that velocity slack too, and is no solution.
    const Tensor z = numbers({1, 0, error / 2});
    const Tensor w = torch::matmul(friction_matrix(), z) + q;
    EXPECT_NEAR(largest(torch::minimum(z, w)), 1 - error / 2, 1e-15);
  }
}

// [Notes, 3.2.2]

TEST_F(PerturbedLcpTest, WrongWeightsOfTheForceMoveAPushedBlockUnlessTheirMeanIsRight) {
  const Tensor pairs = numbers({0.9, 1.1, 1, 1.2, 1.1, 0.9, 1, 1, 0.8, 1, 1.2, 1, 1, 0.8, 0.7, 1.2}).view({8, 2});
  for (std::int64_t k = 0; k < 8; ++k) {
    const double a1 = pairs[k][0].item<double>(), a2 = pairs[k][1].item<double>(), mean = (a1 + a2) / 2;
    for (const double u : {0.2, -0.2}) {
      const bool slack = u > 0 ? a2 >= a1 : a1 >= a2;
      const double v = slack ? u * (1 - mean) : u * (1 - (u > 0 ? a2 : a1));
      const Tensor q = numbers({a1 * u, -a2 * u, 1});
      const Solutions all = all_solutions(friction_matrix(), q);
      const Tensor z = lemke(friction_matrix(), q).z;
      EXPECT_NEAR(u + force(z).item<double>(), v, 1e-15);
      EXPECT_NEAR(z[2].item<double>(), slack ? (a2 - a1) * u / 2 : 0, 1e-15);
      EXPECT_LT(largest(u + force(all.z.index({all.found})) - v), 1e-15);
    }
  }
  EXPECT_LT(largest(lemke(friction_matrix(), numbers({0.18, -0.22, 1})).z - numbers({0.4, 0.6, 0.02})), 1e-15);
}

// [Notes, 3.2]

TEST_F(PerturbedLcpTest, AQuarterOfRestingBlocksRestAfterNoise) {
  const Tensor q = friction_vector(number(0));
  for (const double sigma : {1e-4, 0.01, 0.3}) {
    const Tensor v =
        velocity(friction_matrix() + sigma * normal({kDraws, 3, 3}), q + sigma * normal({kDraws, 3}), number(0));
    EXPECT_NEAR(fraction(v.abs() < 1e-9), 0.25, 0.02) << sigma;
  }
}

TEST_F(PerturbedLcpTest, NoiseOnMAloneLeavesARestingBlockAtRest) {
  const Tensor M = friction_matrix() + 0.3 * normal({kDraws, 3, 3});
  EXPECT_EQ(largest(velocity(M, friction_vector(number(0)), number(0))), 0);
}

TEST_F(PerturbedLcpTest, NoiseOnQAloneLeavesABlockAtRestWhereBothRowsStayPositive) {
  for (const double sigma : {1e-3, 0.1, 0.5}) {
    const Tensor q = friction_vector(number(0)) + sigma * normal({kDraws, 3});
    const Solutions all = all_solutions(friction_matrix(), q);
    const Tensor limited = q.select(-1, 2) >= 0;
    EXPECT_TRUE(torch::equal(all.found.sum(0), limited.to(torch::kLong)));
    const Tensor positive = (q.slice(-1, 0, 2) >= 0).all(-1) & limited;
    EXPECT_TRUE(torch::equal(velocity(friction_matrix(), q, number(0)).abs() < 1e-9, positive));
  }
}

TEST_F(PerturbedLcpTest, NoiseMovesEveryBlockThatFrictionHolds) {
  const Tensor free = torch::empty({kDraws}, torch::kDouble).uniform_(0.1, 0.85) * normal({kDraws}).sign();
  for (const double sigma : {0.01, 0.1}) {
    const Tensor M = friction_matrix() + sigma * normal({kDraws, 3, 3});
    const Tensor q = friction_vector(free) + sigma * normal({kDraws, 3});
    const Tensor v = velocity(M, q, free);
    EXPECT_EQ(count(v.abs() < 1e-9), 0) << sigma;
    EXPECT_NEAR(v.abs().nanmedian().item<double>() / sigma, 0.7, 0.15) << sigma;  // but by no more than the noise
  }
}

TEST_F(PerturbedLcpTest, AnErrorInMuAloneMovesNothing) {
  const Tensor free = torch::empty({2000}, torch::kDouble).uniform_(-0.85, 0.85);
  const Tensor mu = torch::empty({2000}, torch::kDouble).uniform_(0.9, 1.1);
  EXPECT_EQ(count(velocity(friction_matrix(), torch::stack({free, -free, mu}, -1), free) == 0), 2000);
}

TEST_F(PerturbedLcpTest, MostBlocksRestWhereOneEntryIsWrong) {
  const auto resting = [](double v, double u) {
    const Tensor changes = 0.1 * torch::cat({torch::eye(12, torch::kDouble), -torch::eye(12, torch::kDouble)});
    const Tensor M = friction_matrix() + changes.slice(1, 0, 9).reshape({24, 3, 3});
    const Tensor q = friction_vector(number(v + u)) + changes.slice(1, 9);
    return velocity(M, q, number(v + u)).abs() < 1e-9;
  };
  EXPECT_EQ(count(resting(0, 0)), 22);
  EXPECT_EQ(count(resting(0, 0.3)), 18);
  EXPECT_EQ(count(resting(0.2, -0.5)), 18);
  // At rest without a force only q_1 and q_2 can do it, by a negative error.
  EXPECT_TRUE(torch::equal(resting(0, 0).logical_not().nonzero().squeeze(-1), torch::tensor({21, 22})));
}

}  // namespace lcp::training::perturbed_lcp_test
