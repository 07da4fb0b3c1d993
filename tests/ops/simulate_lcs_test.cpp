#include "lcp/simulate_lcs.h"

#include <gtest/gtest.h>
#include <torch/autograd.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <cmath>
#include <limits>
#include <tuple>
#include <vector>

#include "lcp/solve.h"
#include "support/errors.h"
#include "support/finite_differences.h"

namespace lcp {
namespace {

using testing::gradient_error;
using testing::Inputs;
using testing::second_gradient_error;
using torch::Tensor;

Tensor numbers(const std::vector<double>& values) { return torch::tensor(values, torch::kDouble); }
Tensor times(const Tensor& A, const Tensor& x) { return (A * x.unsqueeze(-2)).sum(-1); }

LinearComplementaritySystem system_of(const Inputs& in) {
  return {in[0], in[1], in[2], in[3], in[4], in[5], in[6], in[7], in[8]};
}

// x_next, z and w of a rollout from in[9] under in[10].
Tensor rollout(const Inputs& in) {
  const LcsRollout all = simulate_lcs(system_of(in), in[9], in[10]);
  return torch::cat({all.x_next, all.z, all.w}, -1);
}

// The same as a loop over lcp::solve.
Tensor loop(const Inputs& in) {
  std::vector<Tensor> steps;
  Tensor x = in[9];
  for (std::int64_t s = 0; s < in[10].size(-2); ++s) {
    const Tensor u = in[10].select(-2, s);
    const SolveResult solved = solve(in[7], times(in[5], x) + times(in[6], u) + in[8]);
    x = times(in[0], x) + times(in[1], u) + times(in[2], solved.z) + times(in[3], solved.w) + in[4];
    steps.push_back(torch::cat({x, solved.z, solved.w}, -1));
  }
  return torch::stack(steps, -2);
}

// P-matrices that are not symmetric, and states that do not grow.
Inputs random_system(std::int64_t k, std::int64_t m, std::int64_t n, std::int64_t count, std::int64_t steps) {
  const auto normal = [count](std::vector<std::int64_t> shape) {
    shape.insert(shape.begin(), count);
    return torch::randn(shape, torch::kDouble);
  };
  const Tensor R = normal({n, n}), S = normal({n, n});
  return {0.3 * normal({k, k}), normal({k, m}),
          0.2 * normal({k, n}), 0.2 * normal({k, n}),
          normal({k}),          normal({n, k}),
          normal({n, m}),       torch::matmul(R.mT(), R) + 1 * torch::eye(n, torch::kDouble) + S - S.mT(),
          normal({n}),          normal({k}),
          normal({steps, m})};
}

// A block of 1 kg in the traditional formulation, dt = .1 s, mu m g = 1 N, under pulls [T].
LinearComplementaritySystem sliding_block() {
  const Tensor M = torch::tensor({{.1, -.1, 1.}, {-.1, .1, 1.}, {-1., -1., 0.}}, torch::kDouble);
  const Tensor sign = numbers({1, -1, 0}).unsqueeze(-1);
  const Tensor none = torch::zeros({1, 1}, torch::kDouble);
  return {none,
          none,
          torch::zeros({1, 3}, torch::kDouble),
          numbers({.5, -.5, 0}).unsqueeze(0),
          numbers({0}),
          sign,
          .1 * sign,
          M,
          numbers({0, 0, 1}),
          {2, 2, -1}};
}

class SimulateLcsTest : public ::testing::Test {
 protected:
  void SetUp() override { torch::manual_seed(5); }
};

TEST_F(SimulateLcsTest, ComputesWhatALoopOverSolveComputes) {
  for (const auto& [k, m, n] : std::vector<std::tuple<int, int, int>>{{1, 1, 1},
                                                                      {1, 1, 2},
                                                                      {2, 1, 3},
                                                                      {4, 2, 4},
                                                                      {5, 6, 4},
                                                                      {3, 2, 5},
                                                                      {2, 2, 9},
                                                                      {2, 1, 20},
                                                                      {0, 1, 2},
                                                                      {1, 0, 2},
                                                                      {2, 1, 0}}) {
    const Inputs in = random_system(k, m, n, 33, 9);
    const Tensor expected = loop(in), actual = rollout(in);
    EXPECT_LT(((actual - expected).abs() / (1 + expected.abs())).max().item<double>(), 1e-12) << n;
    Inputs leaves, others;
    for (const Tensor& x : in) {
      leaves.push_back(x.clone().requires_grad_());
      others.push_back(x.clone().requires_grad_());
    }
    const auto got = torch::autograd::grad({rollout(leaves).square().sum()}, leaves, {}, false, false, true);
    const auto wanted = torch::autograd::grad({loop(others).square().sum()}, others, {}, false, false, true);
    for (std::size_t i = 0; i < in.size(); ++i) {
      if (in[i].numel() == 0) continue;
      const Tensor zeros = torch::zeros_like(in[i]);
      const Tensor a = got[i].defined() ? got[i] : zeros, b = wanted[i].defined() ? wanted[i] : zeros;
      const double scale = std::max(1.0, b.abs().max().item<double>());
      EXPECT_LT((a - b).abs().max().item<double>(), 1e-12 * scale) << n << " input " << i;
    }
  }
}

TEST_F(SimulateLcsTest, HasTheDerivativesOfDifferences) {
  for (const int n : {1, 3, 5}) {
    const Inputs in = random_system(2, 1, n, 2, 3);
    EXPECT_LT(gradient_error(rollout, in), 1e-6) << n;
    EXPECT_LT(second_gradient_error(rollout, in), 1e-5) << n;
  }
}

TEST_F(SimulateLcsTest, ABlockSticksAndSlides) {
  const Tensor u = numbers({5, 0, 0, 0, 0, .9, -.9, 0, -3, -3, 0, 0}).unsqueeze(-1);
  const LcsRollout all = simulate_lcs(sliding_block(), numbers({.05}), u);
  EXPECT_TRUE((all.status == 0).all().item<bool>());
  const Tensor expected = numbers({.45, .35, .25, .15, .05, .04, 0, 0, -.2, -.4, -.3, -.2});
  EXPECT_LT((all.x_next.squeeze(-1) - expected).abs().max().item<double>(), 1e-14);
  EXPECT_EQ(all.x_next[6].item<double>(), 0);
  EXPECT_EQ(all.x_next[7].item<double>(), 0);
  EXPECT_LT(all.residual.max().item<double>(), 1e-15);
}

// The velocity of a block that sticks has no gradient, also where nothing pulls at it and both directions are tied.
TEST_F(SimulateLcsTest, ABlockThatSticksHasNoGradientHoweverItsPairsAreTied) {
  for (const Ties ties : {Ties::kInactive, Ties::kActive, Ties::kMidpoint}) {
    for (const double pull : {0.0, 0.5, -0.5}) {
      const Tensor x = numbers({0}).requires_grad_(), u = numbers({pull, 0}).unsqueeze(-1).requires_grad_();
      const LcsRollout all = simulate_lcs(sliding_block(), x, u, {ties});
      for (const Tensor& g : torch::autograd::grad({all.x_next.sum()}, {x, u})) {
        EXPECT_TRUE((g == 0).all().item<bool>()) << ties_name(ties) << " " << pull;
      }
    }
  }
}

TEST_F(SimulateLcsTest, HasTheGradientsOfBothSidesOfABranch) {
  for (const double pull : {0.99, 1.01}) {
    const auto velocity = [](const Inputs& in) {
      LinearComplementaritySystem block = sliding_block();
      block.q = torch::cat({numbers({0, 0}), in[0]});
      return simulate_lcs(block, in[1], in[2]).x_next;
    };
    const Inputs in = {numbers({1}), numbers({0}), numbers({pull, 0}).unsqueeze(-1)};
    EXPECT_LT(gradient_error(velocity, in, 1e-7), 1e-7);
  }
}

// w = -z + q has no solution where q < 0.
TEST_F(SimulateLcsTest, ATrajectoryEndsAtTheFirstStepThatIsNotSolved) {
  const Tensor one = torch::ones({1, 1}, torch::kDouble);
  const LinearComplementaritySystem system = {.5 * one, one, .25 * one, 0 * one,      numbers({.1}),
                                              one,      one, -one,      numbers({.5})};
  Tensor u = torch::ones({2, 6, 1}, torch::kDouble);
  u[0][3] = -5;
  const LcsRollout all = simulate_lcs(system, numbers({.3}), u);
  const Tensor unsolved = all.status != 0;
  EXPECT_EQ(unsolved.sum().item<int>(), 3);
  EXPECT_EQ(all.status[0][3].item<int>(), static_cast<int>(Status::kInfeasible));
  EXPECT_EQ(all.status[0][4].item<int>(), static_cast<int>(Status::kBadInput));
  EXPECT_EQ(all.status[0][5].item<int>(), static_cast<int>(Status::kBadInput));
  for (const Tensor& x : {all.x_next, all.z, all.w}) EXPECT_TRUE(torch::equal(x.squeeze(-1).isnan(), unsolved));
  EXPECT_TRUE(torch::equal(all.residual.isnan(), unsolved));
}

TEST_F(SimulateLcsTest, NamesWhatDoesNotFit) {
  const Tensor x = numbers({0}), u = torch::zeros({3, 1}, torch::kDouble);
  const auto message = [&](const LinearComplementaritySystem& system) {
    return testing::error_of([&] { simulate_lcs(system, x, u); });
  };
  LinearComplementaritySystem system = sliding_block();
  system.E = torch::zeros({2, 1}, torch::kDouble);
  EXPECT_NE(message(system).find("E must be [..., n, k] with A's k = 1 and D's n = 3"), std::string::npos)
      << message(system);
  system = sliding_block();
  system.cone = {2, 2, 3};
  EXPECT_NE(message(system).find("cone must be of -1..n - 1 with M's n = 3"), std::string::npos) << message(system);
}

}  // namespace
}  // namespace lcp
