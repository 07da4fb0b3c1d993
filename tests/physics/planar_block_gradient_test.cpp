#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <vector>

#include "lcp/physics/friction_cone.h"
#include "lcp/physics/planar_block.h"
#include "physics/planar_block_options.h"
#include "support/finite_differences.h"
#include "support/tensors.h"

namespace lcp::physics::planar_block_gradient_test {

using testing::count;
using testing::Inputs;
using testing::jacobians;
using testing::largest;
using testing::list;
using testing::number;
using testing::numbers;
using testing::Slopes;
using testing::slopes;
using torch::Tensor;
using Formulation = PlanarBlockFormulation;

class PlanarBlockGradientTest : public ::testing::Test {
 protected:
  void SetUp() override { torch::manual_seed(11); }
};

// Gradients.

// A block that slides straight, one that turns, one that is stopped and held, and one that is stopped and thrown back.
struct Drive {
  Tensor v = numbers({2.0, 0.7, 1.1, -1.6, 0.31, 0.24, -0.52, 0.13}).view({4, 2});
  Tensor u = numbers({0.4,  0.3,  3.0,  7.0, 0.5,  -0.3, 2.9,  0.6,   //
                      -0.3, 0.6,  4.0,  8.0, -0.4, 1.1,  9.1,  -2.3,  //
                      0.2,  0.1,  -7.0, 9.0, 0.9,  -0.8, 12.7, -3.1,  //
                      0.5,  -0.9, -9.0, 3.0, 6.1,  4.2,  11.3, 2.9})
                 .view({4, 4, 2});
};

TEST_F(PlanarBlockGradientTest, DifferentiatesARolloutInStateInputsAndParameters) {
  const Drive drive;
  std::vector<PlanarBlockOptions> all;
  for (const int n : {4, 8, 10}) {
    all.push_back(options_of(Formulation::kExactDirection, n));
    all.push_back(options_of(Formulation::kPolyhedral, n));
  }
  for (const int passes : {1, 3}) {
    for (const bool relaxed : {false, true}) {
      all.push_back(passes_of(passes, relaxed));
      all.back().direction_tolerance = 0;
    }
  }
  for (const PlanarBlockOptions& options : all) {
    const auto rollout = [&](const Inputs& in) {
      const auto solution = simulate(in[0], in[1], {in[2], in[3], in[4], in[5]}, options);
      return torch::cat({solution.step.v_next, solution.step.force / 10}, -1);
    };
    const Inputs in{drive.v,     drive.u, numbers({1.3, 1.1, 0.9, 1.2}), number(0.1), numbers({0.3, 0.25, 0.35, 0.3}),
                    number(9.81)};
    EXPECT_LT(testing::gradient_error(rollout, in), 1e-6)
        << static_cast<int>(options.formulation) << " " << options.directions << " " << options.max_passes;
    if (options.formulation == Formulation::kFixedPoint) continue;
    const Tensor v_next = rollout(in).slice(-1, 0, 2);
    const Tensor rests = (v_next == 0).all(-1);
    EXPECT_EQ(count(rests.select(1, 0)), 0);
    EXPECT_GT(count(rests.select(1, 2)), 0);
    EXPECT_FALSE(rests[3][2].item<bool>());
    EXPECT_LT((v_next[3][1] * drive.v[1]).sum().item<double>(), 0);  // turned back
    EXPECT_LT((v_next[3][3] * drive.v[3]).sum().item<double>(), 0);
  }
}

TEST_F(PlanarBlockGradientTest, DifferentiatesTheExactStep) {
  const Drive drive;
  const auto rollout = [&](const Inputs& in) { return exact_rollout(in[0], in[1], {in[2], in[3], in[4], in[5]}); };
  EXPECT_LT(testing::gradient_error(rollout, {drive.v, drive.u, number(1.3), number(0.1), number(0.3), number(9.81)}),
            1e-6);
}

TEST_F(PlanarBlockGradientTest, HasTheDerivativeOfTheFixedPointWhereItHasConverged) {
  // A block that coasts is at the fixed point from the first pass on.
  const PlanarBlock block = dyadic_block();
  const Tensor v = numbers({0.75, 1, 2, 0, -1, 1.5}).view({-1, 2});
  const auto by_push = [&](const PlanarBlockOptions& options) {
    return jacobians([&, options](const Tensor& u) { return step(v, u, block, options).step.v_next; },
                     torch::zeros_like(v));
  };
  const Tensor exact = by_push(options_of(Formulation::kExactDirection));
  for (const bool relaxed : {false, true}) {
    EXPECT_LT(largest(by_push(passes_of(30, relaxed)) - exact), 1e-12);
    EXPECT_GT(largest(by_push(passes_of(1, relaxed)) - exact), 1e-3);
    const auto solution = step(v, torch::zeros_like(v), block, passes_of(30, relaxed));
    const torch::NoGradGuard no_grad;
    EXPECT_TRUE(
        torch::equal(solution.step.v_next, step(v, torch::zeros_like(v), block, passes_of(30, relaxed)).step.v_next));
  }
}

// (1 - S / |v*|) P + (1 - P), with P what is across v*.
Tensor true_jacobian(const Tensor& v, double S) {
  const Tensor speed = v.norm(2, -1).view({-1, 1, 1});
  const Tensor t = v.unsqueeze(-1) / speed;
  const Tensor along = torch::matmul(t, t.mT());
  const Tensor sliding = (1 - S / speed) * (torch::eye(2, torch::kDouble) - along) + along;
  return torch::where(speed > S, sliding, 0);
}

TEST_F(PlanarBlockGradientTest, HasTheTrueGradientWhereItSlidesAlongAnAxis) {
  const PlanarBlock block = dyadic_block();
  const Tensor v = numbers({1, 0, 0, 1, -1, 0, 0, -1.5, 0.75, 0, 0, -0.625}).view({-1, 2});
  const auto next = [&](const Tensor& x) { return step(x, torch::zeros_like(x), block).step.v_next; };
  EXPECT_LT(largest(jacobians(next, v) - true_jacobian(v, 0.5)), 1e-14);
}

TEST_F(PlanarBlockGradientTest, HasTheTrueGradientWhereItSlidesAcrossADirection) {
  // Round-off may put v* and its direction on different sides of the line across d_i.
  const PlanarBlock block = dyadic_block();
  for (const int n : kNumbersOfDirections) {
    const Tensor D = friction_directions(n, torch::kDouble).t();
    const Tensor speed = torch::rand({50, 1, 1}, torch::kDouble) * 3 + 0.6;
    const Tensor v = (speed * D).reshape({-1, 2});
    const auto next = [&](const Tensor& x) {
      return step(x, torch::zeros_like(x), block, options_of(Formulation::kExactDirection, n)).step.v_next;
    };
    EXPECT_LT(largest(jacobians(next, v) - true_jacobian(v, 0.5)), 1e-9) << n;
  }
}

TEST_F(PlanarBlockGradientTest, HasNoGradientWhereItSticksAlongAnAxis) {
  const PlanarBlock block = dyadic_block();
  for (const auto formulation : kFormulations) {
    const Tensor v = numbers({0.25, 0, 0, 0.25, -0.375, 0, 0, -0.125, 0.25, 0.25}).view({-1, 2});
    const auto next = [&](const Tensor& x) {
      return step(x, torch::zeros_like(x), block, options_of(formulation)).step.v_next;
    };
    EXPECT_EQ(largest(next(v)), 0);
    EXPECT_EQ(largest(jacobians(next, v)), 0);
  }
}

TEST_F(PlanarBlockGradientTest, HoldsAStickingBlockAgainstEveryPush) {
  const PlanarBlock block = dyadic_block();
  const Tensor v = numbers({0.25, 0, 0, 0, 0, -0.125, 0.25, 0.125}).view({-1, 2});
  for (const auto formulation : {Formulation::kExactDirection, Formulation::kPolyhedral}) {
    const auto force = [&](const Tensor& u) { return step(v, u, block, options_of(formulation, 4)).step.force; };
    const Tensor J = jacobians(force, torch::zeros_like(v));
    EXPECT_LT(largest(J + torch::eye(2, torch::kDouble)), 1e-14) << static_cast<int>(formulation);
  }
}

TEST_F(PlanarBlockGradientTest, HasNoGradientAtRest) {
  const Tensor rest = torch::zeros({1, 2}, torch::kDouble);
  for (const auto formulation : kFormulations) {
    const auto next = [&](const Tensor& x) {
      const PlanarBlock block{x.select(-1, 4), number(0.125), x.select(-1, 5), number(8)};
      return step(x.slice(-1, 0, 2), x.slice(-1, 2, 4), block, options_of(formulation)).step.v_next;
    };
    EXPECT_EQ(largest(jacobians(next, torch::cat({rest, rest, numbers({2, 0.5}).view({1, 2})}, -1))), 0);
  }
}

TEST_F(PlanarBlockGradientTest, GlidesWithoutFriction) {
  const PlanarBlock block = PlanarBlock::of(2, 0.125, 0, 8);
  const Tensor v = numbers({1, 0, 0, -1, 0.3, 0.7, 0, 0}).view({-1, 2});
  const auto next = [&](const Tensor& x) { return step(x, torch::zeros_like(x), block).step.v_next; };
  EXPECT_LT(largest(next(v) - v), 1e-15);
  EXPECT_LT(largest(jacobians(next, v) - torch::eye(2, torch::kDouble)), 1e-14);
}

TEST_F(PlanarBlockGradientTest, SmoothsTheGradientOfABlockThatSticks) {
  // Where friction is overestimated, a little less of it does not move the block: only the smoothed gradient is not 0.
  SolveOptions smooth;
  smooth.kappa = 1e-2;
  for (const auto formulation : {Formulation::kExactDirection, Formulation::kPolyhedral}) {
    const auto next = [&](const Tensor& mu) {
      const PlanarBlock block{number(2), number(0.125), mu.squeeze(-1), number(8)};
      return step(numbers({0.25, 0.125}), numbers({0, 0}), block, options_of(formulation), smooth).step.v_next;
    };
    Tensor J;
    ASSERT_NO_THROW(J = jacobians(next, numbers({0.5}).view({1, 1})));
    EXPECT_LT(J[0][0][0].item<double>(), -1e-4) << static_cast<int>(formulation);
  }
}

// Certificates.

struct Counts {
  std::vector<std::int64_t> unsolved, tied, kinked;
};

Counts counts(const Tensor& v, const Tensor& u, const PlanarBlock& block, const PlanarBlockOptions& options) {
  const auto certificate = certify_rollout(v, u, block, options, simulate(v, u, block, options));
  const auto list = [](const Tensor& x) {
    const Tensor flat = x.contiguous().view(-1);
    return std::vector<std::int64_t>(flat.const_data_ptr<std::int64_t>(),
                                     flat.const_data_ptr<std::int64_t>() + flat.numel());
  };
  return {list(certificate.unsolved), list(certificate.tied), list(certificate.kinked)};
}

using List = std::vector<std::int64_t>;

TEST_F(PlanarBlockGradientTest, CountsTiedAndKinkedStepsOfThePolyhedralCone) {
  // Each step takes 0.5 off a speed along an axis.
  const Tensor v = numbers({
                               1.25, 0,      // slides, slides, sticks and rests: two ties
                               0, -1,        // slides, meets the edge of sticking, rests
                               0.25, 0.125,  // sticks and rests
                               1.5, 1,       // changes the vertex: ends with equal speeds
                               3, 1.625,     // slides all the way
                           })
                       .view({-1, 2});
  const Tensor u = torch::zeros({4, 5, 2}, torch::kDouble);
  const Counts seen = counts(v, u, dyadic_block(), options_of(Formulation::kPolyhedral, 4));
  EXPECT_EQ(seen.unsolved, (List{0, 0, 0, 0, 0}));
  EXPECT_EQ(seen.tied, (List{2, 3, 4, 1, 0}));
  EXPECT_EQ(seen.kinked, (List{0, 1, 0, 1, 0}));
}

TEST_F(PlanarBlockGradientTest, CountsTiedAndKinkedStepsOfTheExactDirection) {
  const Tensor v = numbers({
                               1.25,
                               0,  // what is across the axis ties, in both directions
                               0,
                               -1,  // also, and meets the edge of sticking
                               0.25,
                               0.125,  // sticks and rests
                               -0.75,
                               -1,  // slides on
                               0,
                               0,
                           })
                       .view({-1, 2});
  const Tensor u = torch::zeros({2, 5, 2}, torch::kDouble);
  const Counts seen = counts(v, u, dyadic_block(), options_of(Formulation::kExactDirection, 4));
  EXPECT_EQ(seen.unsolved, (List{0, 0, 0, 0, 0}));
  EXPECT_EQ(seen.tied, (List{2, 2, 0, 0, 0}));
  EXPECT_EQ(seen.kinked, (List{0, 1, 0, 0, 0}));
}

TEST_F(PlanarBlockGradientTest, CountsUnsolvedSteps) {
  const Tensor v = numbers({1, 0.5, NAN, 0, 1, 2}).view({-1, 2});
  Tensor u = torch::zeros({5, 3, 2}, torch::kDouble);
  u[3][2][0] = NAN;
  for (const auto formulation : kFormulations) {
    EXPECT_EQ(counts(v, u, dyadic_block(), options_of(formulation)).unsolved, (List{0, 5, 2}));
  }
}

TEST_F(PlanarBlockGradientTest, CallsAStepTiedWithinATolerance) {
  const PlanarBlock block = dyadic_block();
  const PlanarBlockOptions options = options_of(Formulation::kPolyhedral);
  const Tensor v = numbers({0.5 + 1e-7, 0});
  const Tensor u = torch::zeros({1, 2}, torch::kDouble);
  const auto rollout = simulate(v, u, block, options);
  EXPECT_EQ(certify_rollout(v, u, block, options, rollout).kinked.item<std::int64_t>(), 0);
  EXPECT_EQ(certify_rollout(v, u, block, options, rollout, 1e-6).kinked.item<std::int64_t>(), 1);
}

TEST_F(PlanarBlockGradientTest, CallsAStepKinkedWhereItIs) {
  const PlanarBlock block = dyadic_block();
  const Tensor axis = torch::arange(-4, 5, torch::kDouble) / 4;
  const Tensor pushes = numbers({-4, 0, 8});
  Tensor grid = torch::stack(torch::meshgrid({axis, axis, pushes, pushes}, "ij"), -1).view({-1, 4});
  std::vector<PlanarBlockOptions> all = {passes_of(1)};
  for (const int n : {4, 6, 8}) {
    all.push_back(options_of(Formulation::kExactDirection, n));
    all.push_back(options_of(Formulation::kPolyhedral, n));
  }
  for (const PlanarBlockOptions& options : all) {
    const auto next = [&](const Tensor& x) {
      return step(x.slice(-1, 0, 2), x.slice(-1, 2), block, options).step.v_next;
    };
    const Counts seen = counts(grid.slice(-1, 0, 2), grid.slice(-1, 2).unsqueeze(0), block, options);
    const Tensor kinked = torch::tensor(seen.kinked) > 0;
    const Slopes slope = slopes(next, grid);
    EXPECT_GT(count(kinked), 20);
    EXPECT_EQ(count(~kinked & (slope.error > 1e-4)), 0)
        << "smooth, but not with this gradient: " << static_cast<int>(options.formulation) << " " << options.directions;
    if (options.formulation == Formulation::kFixedPoint) continue;
    EXPECT_EQ(count(kinked & (slope.jump < 1e-4)), 0)
        << "kinked, but smooth: " << static_cast<int>(options.formulation) << " " << options.directions;
  }
}

}  // namespace lcp::physics::planar_block_gradient_test
