#include <gtest/gtest.h>
#include <torch/autograd.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lcp/physics/sliding_block.h"
#include "lcp/solve_mixed.h"
#include "lcp/status.h"
#include "support/finite_differences.h"
#include "support/tensors.h"

namespace lcp::physics::sliding_block_formulations_test {

using testing::count;
using testing::everywhere;
using testing::Inputs;
using testing::largest;
using testing::number;
using testing::numbers;
using Formulation = SlidingBlockFormulation;
using torch::Tensor;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kGravity = 9.81;

// NaN equals NaN.
bool same(const Tensor& a, const Tensor& b) {
  return a.sizes() == b.sizes() && everywhere((a == b) | (a.isnan() & b.isnan()));
}

Tensor stacked(const SlidingBlockStep& step) {
  return torch::stack({step.v_next, step.lambda_plus, step.lambda_minus, step.gamma});
}

// The velocities that the steps of a rollout began with.
Tensor starts(const Tensor& v, const Tensor& v_next) { return torch::cat({v.unsqueeze(0), v_next.slice(0, 0, -1)}); }

// The unique part of a solution: everything but the split of the friction force of a block that sticks.
Tensor unique_part(const SlidingBlockStep& step, Formulation formulation) {
  switch (formulation) {
    case Formulation::kForward:
    case Formulation::kDirect:
      return stacked(step);
    default:
      return torch::stack({step.v_next, step.lambda_plus - step.lambda_minus, step.gamma});
  }
}

// What every formulation must do.
class FormulationTest : public ::testing::TestWithParam<Formulation> {
 protected:
  void SetUp() override { torch::manual_seed(6); }

  static bool is(Formulation formulation) { return GetParam() == formulation; }
  static bool has_cone() { return is(Formulation::kTraditional) || is(Formulation::kMixed); }

  // Half of the steps stick. The block moves to the right only where the formulation knows no other direction.
  static std::pair<Tensor, Tensor> random_states(const std::vector<std::int64_t>& shape,
                                                 torch::Dtype dtype = torch::kDouble) {
    const Tensor v = torch::randn(shape, dtype) * 2, u = torch::randn(shape, dtype) * 3;
    if (is(Formulation::kForward)) return {v.abs(), u.abs()};
    return {v, u};
  }

  static Inputs everything(const SlidingBlockSolution& solution) {
    return {stacked(solution.step), solution.z.movedim(-1, 0), solution.residual, solution.status};
  }

  const SlidingBlock round_ = SlidingBlock::of(1, 0.5, 0.5, 8);
};

std::string name_of(const ::testing::TestParamInfo<Formulation>& info) {
  switch (info.param) {
    case Formulation::kForward:
      return "Forward";
    case Formulation::kDirect:
      return "Direct";
    case Formulation::kTraditional:
      return "Traditional";
    default:
      return "Mixed";
  }
}

INSTANTIATE_TEST_SUITE_P(All, FormulationTest,
                         ::testing::Values(Formulation::kForward, Formulation::kDirect, Formulation::kTraditional,
                                           Formulation::kMixed),
                         name_of);

TEST_P(FormulationTest, AgreesWithExactCoulombFriction) {
  for (const double mass : {0.2, 2.5}) {
    for (const double dt : {1.0, 0.01, 0.001}) {
      for (const double mu : {0.0, 0.3, 1.1}) {
        const SlidingBlock block = SlidingBlock::of(mass, dt, mu, kGravity);
        auto [v, u] = random_states({3000});
        v = v * (mu + 0.1) * dt * kGravity;
        u = u * (mu + 0.1) * mass * kGravity / 2;
        const auto solution = step(v, u, block, GetParam());
        const Tensor exact = exact_step(v, u, block).v_next;
        EXPECT_TRUE(everywhere(solution.status == 0));
        EXPECT_LE(largest(solution.step.v_next - exact), 1e-11);
        EXPECT_TRUE(torch::equal(solution.step.v_next == 0, exact == 0));
        EXPECT_LE(largest(solution.residual), 1e-10);
      }
    }
  }
}

TEST_P(FormulationTest, TakesParametersOfEachElement) {
  const SlidingBlock block{torch::exp2(torch::arange(4, torch::kDouble) - 2).unsqueeze(-1), numbers({0.5, 0.25, 0.125}),
                           torch::rand({2, 1, 1}, torch::kDouble), numbers({8, 9, 10})};
  auto [v, u] = random_states({4, 3});
  const auto batch = step(v, u, block, GetParam());
  ASSERT_EQ(batch.step.v_next.sizes(), (std::vector<std::int64_t>{2, 4, 3}));
  EXPECT_GT(count(batch.status == 0), 0);
  for (int i = 0; i < 2; ++i) {
    for (int j = 0; j < 4; ++j) {
      for (int k = 0; k < 3; ++k) {
        const SlidingBlock one{block.mass[j][0], block.dt[k], block.mu[i][0][0], block.gravity[k]};
        const auto single = everything(step(v[j][k], u[j][k], one, GetParam()));
        const auto batched = everything(batch);
        for (std::size_t p = 0; p < single.size(); ++p) {
          EXPECT_TRUE(same(single[p], batched[p].index({"...", i, j, k}))) << p;
        }
      }
    }
  }
}

// With as many steps as elements, and with another number.
TEST_P(FormulationTest, BroadcastsInputsAgainstAStateInARolloutAsInAStep) {
  for (const int steps : {3, 5}) {
    const Tensor v = random_states({4, 3}).first;
    const Tensor u = random_states({steps, 3}).second;
    const Tensor mass = numbers({1, 1, 2, 2}).unsqueeze(-1);
    const SlidingBlock block{mass, round_.dt, round_.mu, round_.gravity};
    const auto expected = simulate(v, u.unsqueeze(1).expand({steps, 4, 3}), block, GetParam());
    const auto broadcast = simulate(v, u, block, GetParam());
    const auto all = everything(expected), those = everything(broadcast);
    for (std::size_t p = 0; p < all.size(); ++p) EXPECT_TRUE(same(all[p], those[p])) << p;
    const auto certificate = certify_rollout(v, u, block, GetParam(), broadcast);
    EXPECT_EQ(certificate.tied.sizes(), v.sizes());

    const auto shared_push = simulate(v[0], u.select(-1, 0), round_, GetParam());
    EXPECT_EQ(shared_push.step.v_next.sizes(), (std::vector<std::int64_t>{steps, 3}));
    EXPECT_TRUE(everywhere((shared_push.residual <= 1e-12) | (shared_push.status != 0)));
    const auto one_state = simulate(v[0][0], u, round_, GetParam());
    EXPECT_EQ(one_state.step.v_next.sizes(), (std::vector<std::int64_t>{steps, 3}));
  }
}

TEST_P(FormulationTest, KeepsThePrecisionOfItsState) {
  for (const auto& shape : {std::vector<std::int64_t>{}, std::vector<std::int64_t>{50}}) {
    const auto [v, u] = random_states(shape, torch::kFloat);
    const auto exact = exact_step(v.to(torch::kDouble), u.to(torch::kDouble), round_).v_next;
    for (const Tensor& push : {u, u.to(torch::kDouble)}) {
      const auto one = step(v, push, round_, GetParam());
      const auto rollout = simulate(v, torch::stack({push, push}), round_, GetParam());
      for (const auto& solution : {one, rollout}) {
        EXPECT_EQ(stacked(solution.step).scalar_type(), torch::kFloat);
        EXPECT_EQ(solution.z.scalar_type(), torch::kFloat);
        EXPECT_EQ(solution.residual.scalar_type(), torch::kFloat);
      }
      EXPECT_TRUE(everywhere(((one.step.v_next - exact).abs() <= 1e-6) | (one.status != 0)));
      EXPECT_EQ(stacked(exact_step(v, push, round_)).scalar_type(), torch::kFloat);
    }
  }
}

TEST_P(FormulationTest, AcceptsAnEmptyBatch) {
  const Tensor none = torch::zeros({2, 0}, torch::kDouble);
  const auto rollout = simulate(none, none.expand({3, 2, 0}), round_, GetParam());
  EXPECT_EQ(rollout.step.v_next.sizes(), (std::vector<std::int64_t>{3, 2, 0}));
  EXPECT_EQ(rollout.residual.sizes(), rollout.step.v_next.sizes());
  EXPECT_EQ(certify_rollout(none, none.expand({3, 2, 0}), round_, GetParam(), rollout).kinked.sizes(), none.sizes());
  EXPECT_EQ(step(none, none, round_, GetParam()).status.sizes(), none.sizes());
}

TEST_P(FormulationTest, IsNaNInEveryMemberWhereItIsNotSolved) {
  const auto solution = step(number(kNaN), number(1), round_, GetParam());
  EXPECT_EQ(solution.status.item<int>(), static_cast<int>(Status::kBadInput));
  EXPECT_TRUE(everywhere(stacked(solution.step).isnan()));
  EXPECT_TRUE(everywhere(solution.z.isnan()));
  EXPECT_TRUE(everywhere(solution.residual.isnan()));
}

// A NaN in the state, a force that overflows, a friction coefficient below 0.
TEST_P(FormulationTest, LeavesTheNeighboursOfABadElementAlone) {
  const auto [v, u] = random_states({6});
  const auto run = [&, v = v, u = u](double bad_v, double bad_u, double bad_mu) {
    Tensor state = v.clone(), push = torch::stack({u, -u / 2, u}), mu = torch::full(6, 0.5, torch::kDouble);
    state[3] = bad_v;
    push[1][3] = bad_u;
    mu[3] = bad_mu;
    const Inputs leaves = {state.requires_grad_(),
                           push.requires_grad_(),
                           torch::ones(6, torch::kDouble).requires_grad_(),
                           torch::full(6, 0.5, torch::kDouble).requires_grad_(),
                           mu.requires_grad_(),
                           torch::full(6, 8., torch::kDouble).requires_grad_()};
    const auto solution = simulate(leaves[0], leaves[1], {leaves[2], leaves[3], leaves[4], leaves[5]}, GetParam());
    Inputs all = everything(solution);
    const Tensor kept = torch::where(solution.status == 0, stacked(solution.step), 0);
    for (const Tensor& g : torch::autograd::grad({kept.sum()}, leaves)) all.push_back(g);
    return all;
  };
  const Tensor others = torch::tensor({0, 1, 2, 4, 5});
  const Inputs good = run(1, 1, 0.5);
  for (const Inputs& beside :
       {run(kNaN, 1, 0.5), run(1, std::numeric_limits<double>::infinity(), 0.5), run(1, 1, -0.1), run(1, kNaN, -0.1)}) {
    for (std::size_t p = 0; p < good.size(); ++p) {
      EXPECT_TRUE(same(good[p].index_select(-1, others), beside[p].index_select(-1, others))) << p;
    }
  }
}

TEST_P(FormulationTest, KeepsTheGradientOfSharedParametersBesideAMaskedElement) {
  const auto gradients = [](const Tensor& v) {
    const Inputs leaves = {number(1).requires_grad_(), number(0.5).requires_grad_(), number(0.5).requires_grad_(),
                           number(8).requires_grad_()};
    const auto rollout = simulate(v, torch::zeros({3, v.numel()}, torch::kDouble),
                                  {leaves[0], leaves[1], leaves[2], leaves[3]}, GetParam());
    const Tensor kept = torch::where(rollout.status == 0, rollout.step.v_next + rollout.step.lambda_minus, 0);
    return torch::stack(torch::autograd::grad({kept.sum()}, leaves, {}, {}, false, true));
  };
  EXPECT_LE(largest(gradients(numbers({5, kNaN, 1})) - gradients(numbers({5, 1}))), 1e-12);
}

TEST_P(FormulationTest, DoesNotDependOnHowTheBatchIsSplit) {
  for (const auto dtype : {torch::kFloat, torch::kDouble}) {
    auto [v, u] = random_states({257}, dtype);
    const auto run = [&, v = v, u = u](int from, int to) {
      const Tensor state = v.slice(0, from, to).requires_grad_(), push = u.slice(0, from, to).requires_grad_();
      const auto solution = simulate(state, torch::stack({push, -push, push}), round_, GetParam());
      Inputs all = everything(solution);
      const Tensor kept = torch::where(solution.status == 0, stacked(solution.step), 0);
      for (const Tensor& g : torch::autograd::grad({kept.sum()}, {state, push})) all.push_back(g);
      return all;
    };
    const auto whole = run(0, 257);
    for (const auto& [from, to] : std::vector<std::pair<int, int>>{{0, 1}, {1, 100}, {100, 257}}) {
      const auto part = run(from, to);
      for (std::size_t p = 0; p < whole.size(); ++p) EXPECT_TRUE(same(part[p], whole[p].slice(-1, from, to))) << p;
    }
  }
}

TEST_P(FormulationTest, StepsATrajectoryAsSingleSteps) {
  const auto [v, u] = random_states({20, 6});
  const auto trajectory = everything(simulate(v[0], u, round_, GetParam()));
  Tensor now = v[0];
  for (int k = 0; k < 20; ++k) {
    const auto one = step(now, u[k], round_, GetParam());
    const auto all = everything(one);
    for (std::size_t p = 0; p < all.size(); ++p) {
      EXPECT_TRUE(same(trajectory[p].select(p < 2 ? 1 : 0, k), all[p])) << p;
    }
    now = one.step.v_next;
  }
}

TEST_P(FormulationTest, ReadsTheSolutionOfWhatItPoses) {
  const auto [v, u] = random_states({50});
  const auto read = [&, v = v, u = u]() -> SlidingBlockStep {
    if (is(Formulation::kMixed)) {
      const MixedProblem mixed = mixed_problem(v, u, round_);
      const MixedResult result = solve_mixed(mixed.A, mixed.B, mixed.C, mixed.M, mixed.p, mixed.q);
      return read_traditional(result.z, result.w);
    }
    const Problem problem = is(Formulation::kForward)  ? forward_problem(v, u, round_)
                            : is(Formulation::kDirect) ? direct_problem(v, u, round_)
                                                       : traditional_problem(v, u, round_);
    const auto [z, w, status] = solve(problem.M, problem.q);
    return is(Formulation::kForward)  ? read_forward(z, w, round_)
           : is(Formulation::kDirect) ? read_direct(z, w, round_)
                                      : read_traditional(z, w);
  };
  EXPECT_TRUE(same(stacked(read()), stacked(step(v, u, round_, GetParam()).step)));
}

// Slides, sticks, breaks away and, where it can, reverses.
TEST_P(FormulationTest, DifferentiatesARolloutInStateInputAndParameters) {
  Tensor v = numbers({1.0, -0.6, 0.05});
  Tensor u = torch::tensor({{2., -4., 0.5}, {-14., 1., 0.5}, {6., 8., -1.}, {-1., -30., 0.2}}, torch::kDouble);
  if (is(Formulation::kForward)) {
    v = v.abs();
    u = u * numbers({1, -1, 1});
    u[1][0] = -5;
    u[2][2] = 8;
    u[3][1] = -1;
  }
  const auto rollout = [](const Inputs& in) {
    return unique_part(simulate(in[0], in[1], {in[2], in[3], in[4], in[5]}, GetParam()).step, GetParam());
  };
  const Inputs shared = {v, u, number(1.3), number(0.1), number(0.3), number(kGravity)};
  const Tensor v_next = rollout(shared)[0];
  EXPECT_GE(count(v_next == 0), 4);
  EXPECT_GE(count((starts(v, v_next) == 0) & (v_next != 0)), 1);
  EXPECT_GE(count(starts(v, v_next) * v_next < 0), is(Formulation::kForward) ? 0 : 2);
  EXPECT_LT(testing::gradient_error(rollout, shared), 1e-6);
  const Tensor spread = torch::linspace(0.9, 1.1, 3, torch::kDouble);
  EXPECT_LT(testing::gradient_error(rollout, {v, u, 1.3 * spread, 0.1 * spread, 0.3 * spread, kGravity * spread}),
            1e-6);
}

TEST_P(FormulationTest, DifferentiatesOnBothSidesOfStickAndSlide) {
  const auto one = [](const Inputs& in) {
    return unique_part(step(in[0], in[1], {in[2], in[3], in[4], in[5]}, GetParam()).step, GetParam());
  };
  for (const double side : {-1.0, 1.0}) {
    if (side < 0 && is(Formulation::kForward)) continue;
    for (const double v : {1.99999, 2.00001}) {
      const Inputs at = {number(side * v), number(0), number(1), number(0.5), number(0.5), number(8)};
      EXPECT_EQ(one(at)[0].item<double>() == 0, v < 2);
      EXPECT_LT(testing::gradient_error(one, at), 1e-6) << side * v;
    }
  }
}

TEST_P(FormulationTest, DifferentiatesTwice) {
  const auto rollout = [](const Inputs& in) {
    return unique_part(simulate(in[0], in[1], {in[2], in[3], in[4], in[5]}, GetParam()).step, GetParam());
  };
  const Tensor v = numbers({6, 1.5}), u = torch::tensor({{2., 0.5}, {-1., 0.7}}, torch::kDouble);
  EXPECT_LT(testing::second_gradient_error(rollout, {v, u, number(1.3), number(0.5), number(0.5), number(8)}), 1e-6);
}

// In the cone formulations every choice keeps the block at rest, since with all ties active gamma = 0 stays.
TEST_P(FormulationTest, HasTheDeclaredGradientAtTheEdgeOfSticking) {
  for (const double side : {-1.0, 1.0}) {
    if (side < 0 && is(Formulation::kForward)) continue;
    for (const auto& [ties, share] :
         std::vector<std::pair<std::string, double>>{{"inactive", 0}, {"active", 1}, {"midpoint", 0.5}}) {
      SolveOptions options;
      options.ties = ties;
      const Tensor v = number(2 * side).requires_grad_(), mu = number(0.5).requires_grad_();
      const auto solution = step(v, number(0), {round_.mass, round_.dt, mu, round_.gravity}, GetParam(), options);
      EXPECT_EQ(solution.step.v_next.item<double>(), 0);
      const auto gradient = torch::autograd::grad({solution.step.v_next}, {v, mu});
      EXPECT_EQ(gradient[0].item<double>(), has_cone() ? 0 : share) << ties;
      EXPECT_EQ(gradient[1].item<double>(), has_cone() ? 0 : -4 * side * share) << ties;
    }
  }
}

TEST_P(FormulationTest, HasAnInformativeGradientWhileItSticksWithKappa) {
  const auto slope = [](double v, double kappa) {
    SolveOptions options;
    options.kappa = kappa;
    const Tensor mu = number(0.5).requires_grad_();
    const auto solution = step(number(v), number(0), {number(1), number(0.5), mu, number(8)}, GetParam(), options);
    EXPECT_EQ(solution.step.v_next.item<double>(), v < 2 ? 0 : v - 2);
    return torch::autograd::grad({solution.step.v_next}, {mu})[0].item<double>();
  };
  EXPECT_EQ(slope(1, 0), 0);
  EXPECT_LT(slope(1, 0.1), -0.01);
  EXPECT_GT(slope(1, 0.1), -1);
  EXPECT_NEAR(slope(3, 1e-4), -4, 1e-2);
}

// Trajectory 0: slides, sticks, reaches the edge of sticking, breaks away, reaches the other edge, slides to the left,
// reverses, sticks with v* = 0. Trajectory 1 slides all the time, trajectory 2 fails in step 5.
TEST_P(FormulationTest, CountsUnsolvedTiedAndKinkedSteps) {
  const Tensor v = numbers({3, 9, 40});
  Tensor u = torch::zeros({8, 3}, torch::kDouble);
  u[5][2] = kNaN;
  u.select(-1, 0).copy_(numbers({0, 0, 4, 5, -5, -8, 16, -8}));
  u.select(-1, 1).fill_(4.5);
  Tensor v_next = numbers({1, 0, 0, 0.5, 0, -2, 4, 0});
  if (is(Formulation::kForward)) {
    u.select(-1, 0).copy_(numbers({0, 0, 4, 5, 0, 4, 16, 0}));
    v_next = numbers({1, 0, 0, 0.5, 0, 0, 6, 4});
  }
  const auto rollout = simulate(v, u, round_, GetParam());
  ASSERT_TRUE(torch::equal(rollout.step.v_next.select(-1, 0), v_next));
  const auto certificate = certify_rollout(v, u, round_, GetParam(), rollout);
  EXPECT_TRUE(torch::equal(certificate.unsolved, torch::tensor({0, 0, 3})));
  EXPECT_TRUE(torch::equal(certificate.tied, torch::tensor({has_cone() ? 4 : 2, 0, 0}))) << certificate.tied;
  EXPECT_TRUE(torch::equal(certificate.kinked, torch::tensor({2, 0, 0}))) << certificate.kinked;
  EXPECT_EQ(certificate.tied.scalar_type(), torch::kLong);
}

TEST_P(FormulationTest, CertifiesWithoutAGradient) {
  const Tensor v = number(1).requires_grad_(), u = torch::zeros(2, torch::kDouble);
  const auto certificate = certify_rollout(v, u, round_, GetParam(), simulate(v, u, round_, GetParam()));
  for (const Tensor& x : {certificate.unsolved, certificate.tied, certificate.kinked}) {
    EXPECT_FALSE(x.requires_grad());
    EXPECT_EQ(x.dim(), 0);
  }
}

// |v*| = dt mu g up to rounding, then beside it.
TEST_P(FormulationTest, CountsWhatIsKinkedWithinATolerance) {
  const auto uniform = [] { return torch::rand(1000, torch::kDouble); };
  const SlidingBlock block{uniform() + 0.5, 0.1 * uniform() + 0.01, uniform() + 0.1, number(kGravity)};
  const Tensor u = uniform();
  const Tensor v = block.dt * (block.mu * block.gravity - u / block.mass);
  const auto kinked = [&](const Tensor& state, std::optional<double> tolerance) {
    const auto rollout = simulate(state, u.unsqueeze(0), block, GetParam());
    return count(certify_rollout(state, u.unsqueeze(0), block, GetParam(), rollout, tolerance).kinked);
  };
  EXPECT_EQ(kinked(v, 1e-12), 1000);
  EXPECT_EQ(kinked(v + 1e-7, {}), 0);
  EXPECT_EQ(kinked(v - 1e-7, {}), 0);
}

TEST_P(FormulationTest, IsKinkedWhereAndOnlyWhereItsOneSidedDerivativesDiffer) {
  const auto [random_v, random_u] = random_states({60});
  const Tensor v = torch::cat({numbers({2, 1, 3, 0, 0, 1, 0.5, 3, 4}), random_v});
  const Tensor u = torch::cat({numbers({0, 2, -2, 4, 0, -2, 1, 0, 1}), random_u});
  const auto rollout = simulate(v, u.unsqueeze(0), round_, GetParam());
  const Tensor kinked = certify_rollout(v, u.unsqueeze(0), round_, GetParam(), rollout).kinked > 0;
  EXPECT_TRUE(torch::equal(kinked.slice(0, 0, 9), torch::tensor({1, 1, 1, 1, 0, 0, 0, 0, 0}) > 0));
  const auto v_next = [](const Inputs& in) {
    return step(in[0], in[1], {in[2], in[3], in[4], in[5]}, GetParam()).step.v_next;
  };
  const Inputs at = {v, u, number(1), number(0.5), number(0.5), number(8)};
  const double h = 1e-7;
  Tensor jump = torch::zeros_like(v);
  for (int direction = 0; direction < 20; ++direction) {
    Inputs ahead, behind;
    for (const Tensor& a : at) {
      const Tensor d = h * torch::randn(v.sizes(), torch::kDouble);
      ahead.push_back(a + d);
      behind.push_back(a - d);
    }
    jump = torch::maximum(jump, (v_next(ahead) - 2 * rollout.step.v_next[0] + v_next(behind)).abs() / h);
  }
  EXPECT_LE(largest(jump.masked_select(~kinked)), 1e-4);
  EXPECT_GE(jump.masked_select(kinked).min().item<double>(), 0.1);
}

}  // namespace lcp::physics::sliding_block_formulations_test
