// Rollouts by lcp::_rollout against the same in operators of tensors.
#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <torch/autograd.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "lcp/physics/planar_block.h"
#include "lcp/physics/point_mass.h"
#include "lcp/physics/tripod.h"
#include "physics/planar_block_options.h"
#include "support/errors.h"

namespace lcp::physics::system_walk_test {
namespace {

using torch::Tensor;
using Tensors = std::vector<Tensor>;

constexpr std::int64_t kCount = 21;
constexpr std::int64_t kSteps = 30;

/// What a rollout has of each step.
struct Result {
  Tensor numbers;  ///< [steps, count, k], what is unique of the states and forces
  Tensor residual, status;
};

using Function = std::function<Result(const Tensors& inputs, const SolveOptions& options)>;

/// A rollout as one call, and as a loop over lcp::solve, as functions of the state, the inputs, [steps, count, ...],
/// and the parameters; each input but those has the trajectories first.
struct System {
  std::string name;
  Tensors inputs;
  std::size_t u, mu;                  ///< the places of the inputs of the steps and of the friction coefficient
  std::int64_t velocity, velocities;  ///< the first of the numbers that are 0 at rest, and how many these are
  std::vector<const char*> ties;
  Function walk, loop;
};

Tensor parameter(double smallest, double largest) {
  return smallest + (largest - smallest) * torch::rand({kCount}, torch::kDouble);
}

Tensor residual_of(const Problem& problem, const Tensor& z) {
  return torch::minimum(z, torch::matmul(problem.M, z.unsqueeze(-1)).squeeze(-1) + problem.q).abs().amax(-1).detach();
}

// Masses that fall, slide, stick and are lifted off.
System point_mass(Stabilization level) {
  const bool bounces = level == Stabilization::kVelocity;
  const auto mass = [=](const Tensors& in) -> PointMass {
    return {in[3], in[4], in[5], in[6], bounces ? in[7] : torch::zeros({}, in[3].options())};
  };
  const auto row = [](const PointMassStep& s) {
    const Tensor impulses = torch::stack({s.lambda_n, s.lambda_plus - s.lambda_minus}, -1);
    return torch::cat({s.next.position, s.next.velocity, impulses}, -1);
  };
  const Function walk = [=](const Tensors& in, const SolveOptions& options) -> Result {
    const auto all = simulate({in[0], in[1]}, in[2], mass(in), {PointMassFormulation::kStewartTrinkle, level}, options);
    return {row(all.step), all.residual, all.status};
  };
  const Function loop = [=](const Tensors& in, const SolveOptions& options) -> Result {
    Tensors steps, residuals, statuses;
    PointMassState state = {in[0], in[1]};
    for (std::int64_t k = 0; k < in[2].size(0); ++k) {
      const Problem problem = reduced_problem(state, in[2][k], mass(in), level);
      const SolveResult r = solve(problem.M, problem.q, options);
      const PointMassStep s = read_point_mass(state, in[2][k], r.z, r.w, mass(in), level, options);
      state = s.next;
      steps.push_back(row(s));
      residuals.push_back(residual_of(problem, r.z));
      statuses.push_back(r.status);
    }
    return {torch::stack(steps), torch::stack(residuals), torch::stack(statuses)};
  };
  const Tensor position = torch::stack({torch::randn({kCount}, torch::kDouble), 0.3 * parameter(-0.3, 1)}, -1);
  const Tensor velocity = torch::stack({torch::randn({kCount}, torch::kDouble), parameter(-1, 1)}, -1);
  Tensor u = torch::randn({kSteps, kCount, 2}, torch::kDouble);
  u.slice(0, 15, 20).select(-1, 1).add_(torch::where(torch::rand({kCount}) < 0.3, 30., 0.));
  u.slice(0, 20).select(-1, 0).mul_(0.1);
  Tensors inputs = {position,        velocity, u, parameter(0.5, 2), parameter(0.03, 0.05), parameter(0.2, 0.6),
                    parameter(5, 10)};
  if (bounces) inputs.push_back(parameter(0, 0.8));
  return {bounces ? "point mass at velocity level" : "point mass at position level",
          inputs,
          2,
          5,
          2,
          1,
          {"inactive", "active", "midpoint"},
          walk,
          loop};
}

// Blocks that slide, turn, come to rest and are pushed off again.
System tripod(std::int64_t directions) {
  const auto block = [](const Tensors& in) -> Tripod { return {in[3], in[4], in[5], in[6], in[7], in[8], in[9]}; };
  const auto row = [](const TripodStep& s) {
    // The forces on a block at rest are not unique.
    const Tensor rests = (s.next.velocity == 0).all(-1, true);
    const Tensor forces = torch::where(rests, 0, torch::cat({s.friction.flatten(-2), s.normal, s.slip}, -1));
    return torch::cat({s.next.pose, s.next.velocity, forces}, -1);
  };
  const Function walk = [=](const Tensors& in, const SolveOptions& options) -> Result {
    const auto all = simulate({in[0], in[1]}, in[2], block(in), directions, options);
    return {row(all.step), all.residual, all.status};
  };
  const Function loop = [=](const Tensors& in, const SolveOptions& given) -> Result {
    Tensors steps, residuals, statuses;
    TripodState state = {in[0], in[1]};
    SolveOptions options = given;
    options.ties = "active";
    for (std::int64_t k = 0; k < in[2].size(0); ++k) {
      const Problem problem = polyhedral_problem(state, in[2][k], block(in), directions);
      const SolveResult r = solve(problem.M, problem.q, options);
      const TripodStep s = read_polyhedral(state, in[2][k], r.z, block(in), options);
      state = s.next;
      steps.push_back(row(s));
      residuals.push_back(residual_of(problem, r.z));
      statuses.push_back(r.status);
    }
    return {torch::stack(steps), torch::stack(residuals), torch::stack(statuses)};
  };
  const Tensor scale = torch::tensor({0.3, 0.3, 4.}, torch::kDouble);
  Tensor u = torch::zeros({kSteps, kCount, 3}, torch::kDouble);
  u.slice(0, 18, 23).copy_(torch::randn({kCount, 3}, torch::kDouble) * torch::tensor({4., 4., 0.1}, torch::kDouble));
  const Tensor supports = Tripod::of(1, 1, 1, 1, 1).supports;
  return {"tripod of " + std::to_string(directions),
          {torch::randn({kCount, 3}, torch::kDouble), scale * torch::randn({kCount, 3}, torch::kDouble), u,
           parameter(0.8, 1.2), parameter(1.5e-3, 2.5e-3), parameter(0.005, 0.01), parameter(0.2, 0.4),
           parameter(9, 10), supports + 0.004 * torch::randn({kCount, 3, 2}, torch::kDouble), parameter(0, 0.02)},
          2,
          6,
          3,
          3,
          {"inactive"},
          walk,
          loop};
}

// Blocks that slide straight, turn, come to rest and are pushed off again.
System planar_block(const std::string& name, const PlanarBlockOptions& how) {
  const Function walk = [=](const Tensors& in, const SolveOptions& options) -> Result {
    const auto all = simulate(in[0], in[1], {in[2], in[3], in[4], in[5]}, how, options);
    return {
        torch::cat(
            {all.step.v_next, all.step.force, all.direction, all.z, torch::stack({all.passes, all.converged}, -1)}, -1),
        all.residual, all.status};
  };
  const Function loop = [=](const Tensors& in, const SolveOptions& given) -> Result {
    SolveOptions options = given;
    options.max_pivots = 1000;  // a walk has no limit of pivots
    return walk(in, options);
  };
  Tensor u = 0.5 * torch::randn({kSteps, kCount, 2}, torch::kDouble);
  u.slice(0, 18, 23).copy_(8 * torch::randn({kCount, 2}, torch::kDouble));
  return {name,
          {torch::randn({kCount, 2}, torch::kDouble), u, parameter(0.5, 2), parameter(0.03, 0.05), parameter(0.2, 0.6),
           parameter(5, 10)},
          1,
          4,
          0,
          2,
          {"inactive"},
          walk,
          loop};
}

// With more passes, those that do not converge amplify round-off beyond what a comparison allows.
PlanarBlockOptions few_passes() {
  PlanarBlockOptions options = passes_of(12);
  options.direction_tolerance = 1e-6;
  return options;
}

std::vector<System> systems() {
  using Formulation = PlanarBlockFormulation;
  return {planar_block("exact direction", options_of(Formulation::kExactDirection)),
          planar_block("exact direction of 12", options_of(Formulation::kExactDirection, 12)),
          planar_block("fixed point", few_passes()),
          planar_block("relaxed fixed point", passes_of(30, true)),
          planar_block("three passes", passes_of(3)),
          planar_block("three relaxed passes", passes_of(3, true, 6)),
          point_mass(Stabilization::kPosition),
          point_mass(Stabilization::kVelocity),
          tripod(4),
          tripod(8)};
}

SolveOptions with_ties(const char* ties) {
  SolveOptions options;
  options.ties = ties;
  return options;
}

Tensors leaves_of(const Tensors& inputs) {
  Tensors leaves;
  for (const Tensor& x : inputs) leaves.push_back(x.clone().requires_grad_());
  return leaves;
}

Tensor weighted_sum(const Tensor& x) {
  const Tensor weights = torch::cos(1.3 * torch::arange(x.numel(), x.options())).view(x.sizes());
  return (weights * x).sum();
}

double relative_error(const Tensor& actual, const Tensor& expected) {
  const double scale = std::max(1.0, expected.abs().max().item<double>());
  return (actual - expected).abs().max().item<double>() / scale;
}

class SystemWalkTest : public ::testing::Test {
 protected:
  void SetUp() override { torch::manual_seed(12); }
};

TEST_F(SystemWalkTest, HasTheValuesOfTheLoopAndComesToRestWhereThatDoes) {
  for (const System& system : systems()) {
    const Result actual = system.walk(system.inputs, {}), expected = system.loop(system.inputs, {});
    EXPECT_LT(relative_error(actual.numbers, expected.numbers), 1e-10) << system.name;
    const auto at_rest = [&](const Result& result) {
      return (result.numbers.narrow(-1, system.velocity, system.velocities) == 0).all(-1);
    };
    const Tensor rests = at_rest(actual);
    EXPECT_TRUE(torch::equal(rests, at_rest(expected))) << system.name;
    EXPECT_GE(rests.sum().item<std::int64_t>(), 20) << system.name;
    EXPECT_GE((~rests).sum().item<std::int64_t>(), 200) << system.name;
    EXPECT_TRUE(torch::equal(actual.status, expected.status)) << system.name;
    EXPECT_EQ(actual.status.abs().max().item<std::int64_t>(), 0) << system.name;
    EXPECT_LT((actual.residual - expected.residual).abs().max().item<double>(), 1e-12) << system.name;
  }
}

TEST_F(SystemWalkTest, HasTheGradientsOfTheLoopInStateInputAndEveryParameter) {
  for (const System& system : systems()) {
    for (const char* const ties : system.ties) {
      const auto gradients = [&](const Function& f) {
        const Tensors leaves = leaves_of(system.inputs);
        return torch::autograd::grad({weighted_sum(f(leaves, with_ties(ties)).numbers)}, leaves);
      };
      const auto actual = gradients(system.walk), expected = gradients(system.loop);
      for (std::size_t i = 0; i < actual.size(); ++i) {
        EXPECT_LT(relative_error(actual[i], expected[i]), 1e-10) << system.name << " " << ties << ", input " << i;
        EXPECT_GT(expected[i].abs().max().item<double>(), 0) << system.name << ", input " << i;
      }
    }
  }
}

// The values, then the gradients in all inputs.
Tensors differentiated(const Function& f, const Tensors& inputs) {
  const Tensors leaves = leaves_of(inputs);
  Tensors all = {f(leaves, {}).numbers};
  const auto gradients = torch::autograd::grad({weighted_sum(all[0])}, leaves);
  all.insert(all.end(), gradients.begin(), gradients.end());
  return all;
}

TEST_F(SystemWalkTest, HasTheDerivativesOfTheLoopWherePairsOfAPlanarBlockAreTied) {
  // S = 1 / 2, so that on this grid the block slides along and across directions, and is just held.
  const Tensor grid = torch::arange(-4, 5, torch::kDouble) / 4;
  const Tensor all = torch::cartesian_prod({grid, grid, grid, grid});
  const PlanarBlock block = dyadic_block();
  std::vector<PlanarBlockOptions> options = {options_of(PlanarBlockFormulation::kExactDirection, 4),
                                             options_of(PlanarBlockFormulation::kExactDirection)};
  for (const bool relaxed : {false, true}) {
    for (const int passes : {1, 2, 3}) options.push_back(passes_of(passes, relaxed, 4));
    options.push_back(passes_of(3, relaxed, 8));
  }
  for (const PlanarBlockOptions& how : options) {
    System system = planar_block("block", how);
    system.inputs = {all.slice(-1, 0, 2), 16 * all.slice(-1, 2).unsqueeze(0), block.mass, block.dt, block.mu,
                     block.gravity};
    const Tensors actual = differentiated(system.walk, system.inputs),
                  expected = differentiated(system.loop, system.inputs);
    for (std::size_t i = 0; i < actual.size(); ++i) {
      EXPECT_LT(relative_error(actual[i], expected[i]), 1e-12)
          << static_cast<int>(how.formulation) << " " << how.directions << " " << how.max_passes << ", result " << i;
    }
  }
}

TEST_F(SystemWalkTest, DifferentiatesThroughAnyNumberOfPasses) {
  // Blocks between S and 2 S, whose passes end in a cycle.
  const Tensor angle = torch::rand({kCount}, torch::kDouble), ratio = parameter(1.1, 1.9);
  const Tensor v = torch::stack({angle.cos(), angle.sin()}, -1);
  const Tensor free = 0.5 * ratio.unsqueeze(-1) * torch::stack({(2 * angle).cos(), (2 * angle).sin()}, -1);
  const PlanarBlock block = dyadic_block();
  for (const int passes : {40, 64, 65, 150, 201}) {
    System system = planar_block("block", passes_of(passes));
    system.inputs = {v, (16 * (free - v)).unsqueeze(0), block.mass, block.dt, block.mu, block.gravity};
    const Tensors actual = differentiated(system.walk, system.inputs),
                  expected = differentiated(system.loop, system.inputs);
    EXPECT_GE((actual[0].select(-1, -2) == passes).sum().item<std::int64_t>(), kCount / 2);
    for (std::size_t i = 0; i < actual.size(); ++i) {
      EXPECT_LT(relative_error(actual[i], expected[i]), 1e-10) << passes << ", result " << i;
    }
  }
}

TEST_F(SystemWalkTest, HasTheGradientsOfWhatTrajectoriesShare) {
  for (const System& system : systems()) {
    const auto gradients = [&](const Function& f, bool shares) {
      Tensors leaves, values;
      for (std::size_t i = 0; i < system.inputs.size(); ++i) {
        const Tensor& x = system.inputs[i];
        const bool shared = i > system.u;
        leaves.push_back((shared ? x[0] : x).clone().requires_grad_());
        values.push_back(shared && !shares ? leaves.back().expand_as(x) : leaves.back());
      }
      return torch::autograd::grad({weighted_sum(f(values, {}).numbers)}, leaves);
    };
    const auto actual = gradients(system.walk, true), expected = gradients(system.walk, false);
    for (std::size_t i = 0; i < actual.size(); ++i) {
      EXPECT_LT(relative_error(actual[i], expected[i]), 1e-12) << system.name << ", input " << i;
    }
  }
}

TEST_F(SystemWalkTest, HasTheSecondDerivativesOfTheLoop) {
  for (const System& system : systems()) {
    const auto product = [&](const Function& f) {
      Tensors inputs = system.inputs;
      inputs[system.u] = inputs[system.u].slice(0, 0, 8);
      const Tensors leaves = leaves_of(inputs);
      const Tensor y = weighted_sum(f(leaves, {}).numbers.square());
      const auto first = torch::autograd::grad({y}, leaves, {}, true, /*create_graph=*/true);
      Tensor sum = torch::zeros({}, torch::kDouble);
      for (const Tensor& g : first) sum = sum + weighted_sum(g);
      return torch::autograd::grad({sum}, leaves);
    };
    const auto actual = product(system.walk), expected = product(system.loop);
    for (std::size_t i = 0; i < actual.size(); ++i) {
      EXPECT_LT(relative_error(actual[i], expected[i]), 1e-9) << system.name << ", input " << i;
    }
  }
}

TEST_F(SystemWalkTest, FailsWhereTheLoopDoesAndLeavesTheOthersAsTheyAre) {
  for (const System& system : systems()) {
    Tensors broken;
    for (const Tensor& x : system.inputs) broken.push_back(x.clone());
    broken[0][2][1] = NAN;
    broken[system.u][10][5][0] = INFINITY;
    const Result healthy = system.walk(system.inputs, {});
    const Tensors leaves = leaves_of(broken), healthy_leaves = leaves_of(system.inputs);
    const Result all = system.walk(leaves, {});
    EXPECT_TRUE((all.status.select(1, 2) == 4).all().item<bool>()) << system.name;
    EXPECT_EQ((all.status.select(1, 5) == 4).sum().item<std::int64_t>(), kSteps - 10) << system.name;
    EXPECT_EQ((all.status != 0).sum().item<std::int64_t>(), 2 * kSteps - 10) << system.name;
    EXPECT_TRUE(torch::equal(all.residual.isnan(), all.status != 0)) << system.name;
    EXPECT_TRUE(all.numbers.select(-1, 2).isnan().equal(all.status != 0)) << system.name;
    Tensor others = torch::ones({kCount}, torch::kBool);
    others[2] = others[5] = false;
    EXPECT_TRUE(torch::equal(all.numbers.index({torch::indexing::Slice(), others}),
                             healthy.numbers.index({torch::indexing::Slice(), others})));

    const auto of_others = [&](const Tensors& in) {
      const Tensor numbers = system.walk(in, {}).numbers;
      return torch::autograd::grad({weighted_sum(torch::where(others.view({1, -1, 1}), numbers, 0))}, in);
    };
    const auto actual = of_others(leaves), expected = of_others(healthy_leaves);
    for (std::size_t i = 0; i < actual.size(); ++i) {
      EXPECT_TRUE(torch::equal(actual[i], expected[i])) << system.name << ", input " << i;
    }
    const auto through = torch::autograd::grad({all.numbers[-1].select(-1, 2).sum()}, leaves);
    EXPECT_TRUE(through[0][2].isnan().all().item<bool>() && through[3][5].isnan().all().item<bool>()) << system.name;
    EXPECT_FALSE(through[3].index({others}).isnan().any().item<bool>()) << system.name;
    // What comes before the failure does not depend on it.
    const auto before = torch::autograd::grad({system.walk(leaves, {}).numbers[9][5].sum()}, leaves);
    EXPECT_FALSE(before[0].isnan().any().item<bool>()) << system.name;
  }
}

TEST_F(SystemWalkTest, HasTheSameBitsForEveryBatchPlaceAndNumberOfThreads) {
  for (const System& system : systems()) {
    const auto run = [&](const Tensors& inputs) {
      Tensors leaves = leaves_of(inputs);
      const Tensor numbers = system.walk(leaves, {}).numbers;
      const Tensor sum = (numbers * torch::cos(torch::arange(numbers.size(-1), torch::kDouble))).sum();
      Tensors all = torch::autograd::grad({sum}, leaves);
      all[system.u] = all[system.u].transpose(0, 1);
      all.push_back(numbers.transpose(0, 1));
      return all;
    };
    const Tensors whole = run(system.inputs);
    const int threads = at::get_num_threads();
    for (const int width : {1, 5, 16}) {
      for (std::int64_t from = 0; from < kCount; from += width) {
        const std::int64_t to = std::min(from + width, kCount);
        Tensors part;
        for (std::size_t i = 0; i < system.inputs.size(); ++i) {
          part.push_back(system.inputs[i].slice(i == system.u ? 1 : 0, from, to));
        }
        const Tensors actual = run(part);
        for (std::size_t i = 0; i < actual.size(); ++i) {
          EXPECT_TRUE(torch::equal(actual[i], whole[i].slice(0, from, to))) << system.name << " " << width << " " << i;
        }
      }
    }
    const auto shared_gradient = [&] {
      const Tensor mu = torch::full({}, 0.3, torch::kDouble).requires_grad_();
      Tensors inputs;
      for (std::size_t i = 0; i < system.inputs.size(); ++i) {
        const auto& x = system.inputs[i];
        inputs.push_back(i == system.u ? x.repeat({1, 40, 1}) : x.repeat(std::vector<std::int64_t>(x.dim(), 1)));
        if (i != system.u) inputs.back() = torch::cat(Tensors(40, x));
      }
      inputs[system.mu] = mu;
      return torch::autograd::grad({system.walk(inputs, {}).numbers.sum()}, {mu})[0];
    };
    at::set_num_threads(1);
    const Tensor one = shared_gradient();
    at::set_num_threads(2);
    EXPECT_TRUE(torch::equal(shared_gradient(), one)) << system.name;
    at::set_num_threads(threads);
  }
}

TEST_F(SystemWalkTest, WalksInSinglePrecision) {
  for (const System& system : systems()) {
    const auto run = [&](const Function& f) {
      Tensors leaves;
      for (std::size_t i = 0; i < system.inputs.size(); ++i) {
        const Tensor& x = system.inputs[i];
        leaves.push_back((i == system.u ? x.slice(0, 0, 6) : x).to(torch::kFloat).requires_grad_());
      }
      const Tensor numbers = f(leaves, {}).numbers;
      Tensors all = torch::autograd::grad({weighted_sum(numbers)}, leaves);
      all.push_back(numbers);
      return all;
    };
    const Tensors actual = run(system.walk), expected = run(system.loop);
    for (std::size_t i = 0; i < actual.size(); ++i) {
      EXPECT_EQ(actual[i].scalar_type(), torch::kFloat);
      EXPECT_LT(relative_error(actual[i], expected[i]), 1e-3) << system.name << " " << i;
    }
  }
}

TEST_F(SystemWalkTest, RefusesARuleForTiesThatThereIsNot) {
  std::vector<System> all = systems();
  all.push_back(planar_block("polyhedral", options_of(PlanarBlockFormulation::kPolyhedral)));
  for (const System& system : all) {
    EXPECT_EQ(testing::error_of([&] { system.walk(system.inputs, with_ties("both")); }),
              R"(ties must be "inactive", "active" or "midpoint"; got "both")")
        << system.name;
  }
}

}  // namespace
}  // namespace lcp::physics::system_walk_test
