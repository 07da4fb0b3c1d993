// Rollouts by lcp::simulate_lcs against the loop over lcp::solve that they stand for.
#include <gtest/gtest.h>
#include <torch/autograd.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "lcp/physics/falling_block.h"
#include "lcp/physics/planar_block.h"
#include "lcp/physics/sliding_block.h"

namespace lcp::physics::walk_test {
namespace {

using torch::Tensor;
using Tensors = std::vector<Tensor>;
using Function = std::function<Tensor(const Tensors& inputs)>;

constexpr std::int64_t kCount = 20;
constexpr std::int64_t kSteps = 30;

/// A rollout as one call and as a loop over its steps: x_next and forces [steps, count, ...] as functions of the state,
/// the inputs and the parameters.
struct System {
  std::string name;
  Tensors inputs;
  Function walk, loop;
  std::int64_t at_rest;  ///< at least so many numbers of the results must be exactly 0
};

class WalkTest : public ::testing::Test {
 protected:
  void SetUp() override { torch::manual_seed(11); }
};

Tensor parameter(double smallest, double largest) {
  return smallest + (largest - smallest) * torch::rand({kCount}, torch::kDouble);
}

// Forces [steps, count, last...] that hold a block, move it, and are 0.
Tensor pulls(const std::vector<std::int64_t>& last) {
  std::vector<std::int64_t> shape = {kSteps, kCount}, single = {kSteps, kCount};
  shape.insert(shape.end(), last.begin(), last.end());
  single.insert(single.end(), last.size(), 1);
  const Tensor u = 6 * torch::randn(shape, torch::kDouble);
  return torch::where(torch::rand(single, torch::kDouble) < 0.3, 0 * u, u);
}

SlidingBlock block_of(const Tensors& in) { return {in[2], in[3], in[4], in[5]}; }

System sliding_block(SlidingBlockFormulation formulation) {
  const bool forward = formulation == SlidingBlockFormulation::kForward;
  const Function walk = [=](const Tensors& in) {
    const auto s = simulate(in[0], in[1], block_of(in), formulation).step;
    return torch::stack({s.v_next, s.lambda_plus, s.lambda_minus, s.gamma}, -1);
  };
  const Function loop = [=](const Tensors& in) {
    Tensors steps;
    Tensor v = in[0];
    for (std::int64_t k = 0; k < kSteps; ++k) {
      const SlidingBlock block = block_of(in);
      const bool direct = formulation == SlidingBlockFormulation::kDirect;
      const Problem problem = forward  ? forward_problem(v, in[1][k], block)
                              : direct ? direct_problem(v, in[1][k], block)
                                       : traditional_problem(v, in[1][k], block);
      const SolveResult r = solve(problem.M, problem.q);
      const SlidingBlockStep s = forward  ? read_forward(r.z, r.w, block)
                                 : direct ? read_direct(r.z, r.w, block)
                                          : read_traditional(r.z, r.w);
      v = s.v_next;
      steps.push_back(torch::stack({v, s.lambda_plus, s.lambda_minus, s.gamma}, -1));
    }
    return torch::stack(steps);
  };
  const Tensor v = torch::randn({kCount}, torch::kDouble), u = pulls({});
  return {"sliding block " + std::to_string(static_cast<int>(formulation)),
          {forward ? v.abs() : v, u, parameter(0.5, 2), parameter(0.05, 0.2), parameter(0.2, 0.6), parameter(5, 10)},
          walk,
          loop,
          50};
}

System falling_block() {
  const auto block = [](const Tensors& in) -> FallingBlock { return {in[2], in[3], in[4]}; };
  const Function walk = [=](const Tensors& in) {
    const auto s = simulate(in[0], in[1], kSteps, block(in)).step;
    return torch::stack({s.x_next, s.v_next, s.lambda}, -1);
  };
  const Function loop = [=](const Tensors& in) {
    Tensors steps;
    Tensor x = in[0], v = in[1];
    for (std::int64_t k = 0; k < kSteps; ++k) {
      const Problem problem = direct_problem(x, v, block(in));
      const SolveResult r = solve(problem.M, problem.q);
      const FallingBlockStep s = read_direct(x, v, r.z, r.w, block(in));
      x = s.x_next;
      v = s.v_next;
      steps.push_back(torch::stack({x, v, s.lambda}, -1));
    }
    return torch::stack(steps);
  };
  return {"falling block",
          {parameter(0, 1), torch::randn({kCount}, torch::kDouble), parameter(0.5, 2), parameter(0.02, 0.05),
           parameter(5, 10)},
          walk,
          loop,
          50};
}

System planar_block(std::int64_t directions) {
  const auto block = [](const Tensors& in) -> PlanarBlock { return {in[2], in[3], in[4], in[5]}; };
  PlanarBlockOptions options;
  options.formulation = PlanarBlockFormulation::kPolyhedral;
  options.directions = directions;
  const Function walk = [=](const Tensors& in) {
    const auto s = simulate(in[0], in[1], block(in), options).step;
    return torch::cat({s.v_next, s.force}, -1);
  };
  const Function loop = [=](const Tensors& in) {
    Tensors steps;
    Tensor v = in[0];
    SolveOptions active;
    active.ties = "active";
    for (std::int64_t k = 0; k < kSteps; ++k) {
      const Problem problem = polyhedral_problem(v, in[1][k], block(in), directions);
      const SolveResult r = solve(problem.M, problem.q, active);
      const PlanarBlockStep s = read_polyhedral(r.z, r.w, active);
      v = s.v_next;
      steps.push_back(torch::cat({v, s.force}, -1));
    }
    return torch::stack(steps);
  };
  return {"planar block of " + std::to_string(directions),
          {torch::randn({kCount, 2}, torch::kDouble), pulls({2}), parameter(0.5, 2), parameter(0.05, 0.2),
           parameter(0.2, 0.6), parameter(5, 10)},
          walk,
          loop,
          50};
}

std::vector<System> systems() {
  return {sliding_block(SlidingBlockFormulation::kForward),
          sliding_block(SlidingBlockFormulation::kDirect),
          sliding_block(SlidingBlockFormulation::kTraditional),
          falling_block(),
          planar_block(4),
          planar_block(8)};
}

TEST_F(WalkTest, HasTheValuesOfTheLoopAndComesToRestWhereThatDoes) {
  for (const System& system : systems()) {
    const Tensor actual = system.walk(system.inputs), expected = system.loop(system.inputs);
    const Tensor error = (actual - expected).abs() / (1 + expected.abs());
    EXPECT_LT(error.max().item<double>(), 1e-12) << system.name;
    EXPECT_TRUE(torch::equal(actual == 0, expected == 0)) << system.name;
    EXPECT_GE((actual == 0).sum().item<std::int64_t>(), system.at_rest) << system.name;
  }
}

TEST_F(WalkTest, HasTheGradientsOfTheLoopInStateInputAndEveryParameter) {
  for (const System& system : systems()) {
    const auto gradients = [&](const Function& f) {
      Tensors leaves;
      for (const Tensor& x : system.inputs) leaves.push_back(x.clone().requires_grad_());
      const Tensor y = f(leaves);
      const Tensor weights = torch::cos(torch::arange(y.numel(), torch::kDouble)).view(y.sizes());
      return torch::autograd::grad({(weights * y).sum()}, leaves);
    };
    const auto actual = gradients(system.walk), expected = gradients(system.loop);
    for (std::size_t i = 0; i < actual.size(); ++i) {
      const double scale = std::max(1.0, expected[i].abs().max().item<double>());
      EXPECT_LT((actual[i] - expected[i]).abs().max().item<double>() / scale, 1e-12) << system.name << ", input " << i;
    }
  }
}

}  // namespace
}  // namespace lcp::physics::walk_test
