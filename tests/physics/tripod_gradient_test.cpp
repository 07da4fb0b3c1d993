#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <vector>

#include "lcp/physics/tripod.h"
#include "support/finite_differences.h"
#include "support/tensors.h"
#include "tripod_blocks.h"

namespace lcp::physics::tripod_test {

using testing::count;
using testing::Inputs;
using testing::jacobians;
using testing::largest;
using testing::list;
using testing::number;
using testing::numbers;
using torch::Tensor;
using List = std::vector<std::int64_t>;

class TripodGradientTest : public ::testing::Test {
 protected:
  void SetUp() override { torch::manual_seed(17); }
};

// Gradients.

// A block that slides on, one that stops, and one that stops and is pushed off again.
struct Drive {
  TripodState state{numbers({0, 0, 0.2, 0.1, -0.1, 1.1, 0.3, 0.1, -0.4}).view({3, 3}),
                    numbers({0.6, 0.3, 5, 0.012, -0.008, 0.4, 0.01, 0.015, -0.3}).view({3, 3})};
  Tensor u = torch::cat({numbers({0.4, 0.1, 0.01, 0.2, 0.3, 0.02, -0.3, 0.2, 0.01}).view({1, 3, 3}).expand({4, 3, 3}),
                         numbers({-0.3, 0.2, 0.02, 0.1, -0.2, 0.01, 4.1, 2.3, 0.07}).view({1, 3, 3}).expand({3, 3, 3})})
                 .contiguous();
};

TEST_F(TripodGradientTest, DifferentiatesARolloutInStateInputsAndParameters) {
  const Drive drive;
  for (const int n : {4, 8}) {
    for (const bool raised : {false, true}) {
      const auto simulated = [&](const Inputs& in) {
        const Tripod tripod{in[3], in[4], in[5], in[6], in[7], in[8], raised ? in[9] : number(0)};
        return simulate({in[0], in[1]}, in[2], tripod, n).step;
      };
      const auto rollout = [&](const Inputs& in) {
        const TripodStep s = simulated(in);
        return torch::cat({s.next.pose, s.next.velocity}, -1);
      };
      Inputs in{drive.state.pose, drive.state.velocity, drive.u,      numbers({1.1, 0.9, 1.2}), number(0.002),
                number(0.005),    number(0.3),          number(9.81), block().supports};
      if (raised) in.push_back(numbers({0.02, 0.01, 0.015}));
      EXPECT_LT(testing::gradient_error(rollout, in, 1e-7), 1e-6) << n << " " << raised;
      const Tensor rests = (simulated(in).next.velocity == 0).all(-1);
      EXPECT_EQ(count(rests.select(1, 0)), 0);
      EXPECT_TRUE(rests[3][1].item<bool>());
      EXPECT_TRUE(rests[3][2].item<bool>());
      EXPECT_FALSE(rests[-1][2].item<bool>());
    }
  }
}

TEST_F(TripodGradientTest, DifferentiatesForcesOfABlockThatSlides) {
  const auto forces = [&](const Inputs& in) {
    const Tripod tripod{in[2], in[3], number(0.005), in[4], in[5], in[6], in[7]};
    const TripodStep s = step({in[0], in[1]}, in[8], tripod).step;
    return torch::cat({s.friction.flatten(-2), s.normal, s.slip}, -1);
  };
  EXPECT_LT(
      testing::gradient_error(forces,
                              {numbers({0, 0, 0.2}), numbers({0.6, 0.3, 5}), number(1.1), number(0.002), number(0.3),
                               number(9.81), block().supports, number(0.02), numbers({0.4, 0.1, 0.01})},
                              1e-7),
      1e-5);
}

TEST_F(TripodGradientTest, HasTheTrueGradientWhereItTurnsAboutASupport) {
  // The force on the support that stays is along a direction: the one across carries nothing, and still holds.
  const Tripod tripod = block();
  const Tensor free = numbers({0, -0.045 * 4, 4}).view({1, 3});
  const Tensor pose = torch::zeros({3}, torch::kDouble);
  const auto next = [&](const Tensor& v) { return step({pose, v}, none(1)[0], tripod).step.next.velocity; };
  const Tensor slip = step({pose, free}, none(1)[0], tripod).step.slip[0];
  ASSERT_EQ(slip[0].item<double>(), 0);
  ASSERT_GT(slip[1].item<double>(), 0.1);
  // A turn about the support is all that is left.
  const Tensor e = numbers({0, -0.045, 1});
  const Tensor inertia = numbers({1, 1, 0.01 / 6});
  const Tensor expected = e.view({3, 1}) * (inertia * e).view({1, 3}) / (inertia * e * e).sum();
  EXPECT_LT(largest(jacobians(next, free)[0] - expected), 1e-9);
}

TEST_F(TripodGradientTest, HasNoGradientAtRest) {
  const auto next = [&](const Tensor& x) {
    Tripod tripod = block();
    tripod.mu = x.select(-1, 6);
    return step({torch::zeros({3}, torch::kDouble), x.slice(-1, 0, 3)}, x.slice(-1, 3, 6), tripod).step.next.velocity;
  };
  Tensor x = torch::zeros({2, 7}, torch::kDouble);
  x.select(1, 6).fill_(0.33);
  x[1].slice(0, 3, 6).copy_(numbers({1, 0, 0.01}));
  EXPECT_EQ(largest(next(x)), 0);
  EXPECT_EQ(largest(jacobians(next, x)), 0);
}

// Certificates.

TEST_F(TripodGradientTest, CountsTiedAndKinkedSteps) {
  const Tensor velocity = numbers({
                                      3.25,
                                      0,
                                      0,  // slides
                                      1.25,
                                      0,
                                      0,  // slides, slides, sticks within its cone and rests
                                      0,
                                      -1,
                                      0,  // slides, meets the edge of sticking, rests
                                      0.125,
                                      0,
                                      1,  // sticks within its cone
                                      NAN,
                                      0,
                                      0,
                                  })
                              .view({5, 3});
  const TripodState state{torch::zeros({5, 3}, torch::kDouble), velocity};
  const Tensor u = torch::zeros({4, 5, 3}, torch::kDouble);
  const auto rollout = simulate(state, u, dyadic_block(), 4);
  EXPECT_EQ(list((rollout.step.next.velocity == 0).all(-1).sum(0)), (List{0, 2, 3, 4, 0}));
  const auto certificate = certify_rollout(state, u, dyadic_block(), 4, rollout);
  EXPECT_EQ(list(certificate.unsolved), (List{0, 0, 0, 0, 4}));
  EXPECT_EQ(list(certificate.tied), (List{0, 2, 3, 4, 0}));
  EXPECT_EQ(list(certificate.kinked), (List{0, 0, 1, 0, 0}));
}

TEST_F(TripodGradientTest, CallsAStepTiedWithinATolerance) {
  const TripodState state{torch::zeros({3}, torch::kDouble), numbers({0.5 + 1e-7, 0, 0})};
  const auto rollout = simulate(state, none(1), dyadic_block(), 4);
  EXPECT_EQ(certify_rollout(state, none(1), dyadic_block(), 4, rollout).kinked.item<std::int64_t>(), 0);
  EXPECT_EQ(certify_rollout(state, none(1), dyadic_block(), 4, rollout, 1e-4).kinked.item<std::int64_t>(), 1);
}

TEST_F(TripodGradientTest, CertifiesALargeRolloutAsSmallOnes) {
  const std::int64_t b = 3000, steps = 14;  // three parts
  const TripodState state{torch::randn({b, 3}, torch::kDouble), 0.2 * torch::randn({b, 3}, torch::kDouble)};
  const TripodSolution all = simulate(state, none(steps).unsqueeze(1), block(), 4);
  const RolloutCertificate whole = certify_rollout(state, none(steps).unsqueeze(1), block(), 4, all);
  for (const std::int64_t i : {0, 1234, 2999}) {
    const TripodState one{state.pose[i], state.velocity[i]};
    const RolloutCertificate alone =
        certify_rollout(one, none(steps), block(), 4, simulate(one, none(steps), block(), 4));
    EXPECT_TRUE(torch::equal(alone.tied, whole.tied[i]) && torch::equal(alone.kinked, whole.kinked[i]));
    EXPECT_GT(alone.tied.item<std::int64_t>(), 0);
  }
  EXPECT_EQ(count(whole.unsolved), 0);
}

TEST_F(TripodGradientTest, HasTheGradientOfBothSidesWhereItIsNotKinked) {
  const Tripod tripod = dyadic_block();
  const Tensor axis = torch::arange(-2, 3, torch::kDouble) / 2;
  Tensor v = torch::stack(torch::meshgrid({axis, axis, axis * 16}, "ij"), -1).view({-1, 3});
  // Turns about each of the supports.
  const Tensor pivots = torch::stack(
      {tripod.supports.select(-1, 1), -tripod.supports.select(-1, 0), torch::ones({3}, torch::kDouble)}, -1);
  v = torch::cat({v, v / 4, pivots * 8, pivots * -16});
  const Tensor pose = torch::zeros_like(v);
  for (const int n : {4, 8}) {
    const auto next = [&](const Tensor& x) { return step({pose, x}, none(1)[0], tripod, n).step.next.velocity; };
    const Tensor u = torch::zeros({1, v.size(0), 3}, torch::kDouble);
    const TripodState state{pose, v};
    const auto certificate = certify_rollout(state, u, tripod, n, simulate(state, u, tripod, n));
    const Tensor smooth = certificate.kinked == 0;
    const Tensor J = jacobians(next, v);
    const double h = 1e-5;  // so that the solver's tolerance does not matter
    Tensor miss = torch::zeros({v.size(0)}, torch::kDouble);
    for (int k = 0; k < 20; ++k) {
      const Tensor d = torch::randn({3}, torch::kDouble) * numbers({1, 1, 16});
      const Tensor slope = torch::matmul(J, d);
      for (const double side : {h, -h}) {
        const Tensor difference = (next(v + side * d) - next(v)) / side;
        miss = torch::maximum(miss, (difference - slope).abs().amax(-1));
      }
    }
    EXPECT_GT(count(smooth & (certificate.tied > 0)), 3);
    EXPECT_EQ(count(smooth & (miss > 1e-3)), 0) << n;
  }
}

}  // namespace lcp::physics::tripod_test
