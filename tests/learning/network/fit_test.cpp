#include "learning/network/fit.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include "learning/network/blocks.h"
#include "learning/network/random.h"

namespace lcp::learning::fit_test {

using namespace fitting;
using nn::LcpNetwork;
using nn::LcpNetworkOptions;
using torch::Tensor;

LcpNetwork two_unknowns() { return LcpNetwork(LcpNetworkOptions(2, 1, 2)); }

// Parameters near those of the block, [count, size()].
Tensor near_block(const LcpNetwork& network, std::int64_t count) {
  return theta_of_block(network) +
         0.1 * torch::randn({count, network->size()}, generator(0, Stream::kStarts), torch::kDouble);
}

// The options of a search whose first input is the velocity.
NetworkSearchOptions of_block() {
  NetworkSearchOptions options;
  options.first_velocity = 0;
  return options;
}

TEST(FitTest, ErrorsAreRelativeToTheUnits) {
  const LcpNetwork network = two_unknowns();
  const Samples motion = sliding_block(20, 1);
  network->output_unit.fill_(2);
  const Tensor nothing = torch::zeros({1, network->size()}, torch::kDouble);
  EXPECT_TRUE(at::equal(errors(network, nothing.unsqueeze(1), motion)[0], -motion.y / 2));
  EXPECT_DOUBLE_EQ(root_mean_squares(network, nothing, motion)[0].item<double>(),
                   (motion.y / 2).square().mean().sqrt().item<double>());
}

TEST(FitTest, CouplingsAreRelativeToTheDiagonal) {
  const LcpNetwork network = two_unknowns();
  const Tensor theta = near_block(network, 3);
  const Tensor M = network->matrix(theta);
  for (std::int64_t k = 0; k < 3; ++k) {
    const Tensor unit = (M[k][0][0] * M[k][1][1]).sqrt();
    EXPECT_TRUE(at::allclose(couplings(network, theta)[k], at::stack({M[k][0][1], M[k][1][0]}) / unit, 1e-14, 0));
  }
  EXPECT_EQ(couplings(network, theta_of_block(network)).abs().max().item<double>(), 0);
}

TEST(FitTest, RowsThatRestAreThoseBelowTheBound) {
  const Samples motion{torch::zeros({3, 2}, torch::kDouble), torch::tensor({{0.0, 0.0}, {0.0, 0.2}, {0.1, -0.1}})};
  EXPECT_TRUE(at::equal(resting_rows(motion, 0), torch::tensor({0})));
  EXPECT_TRUE(at::equal(resting_rows(motion, 0.15), torch::tensor({0, 2})));
}

TEST(FitTest, FindsTheBlockFromNearIt) {
  const LcpNetwork network = two_unknowns();
  const Tensor theta = fit(network, sliding_block(40, 1), near_block(network, 4), 80, {}, {}, {});
  EXPECT_LT(root_mean_squares(network, theta, sliding_block(1000, 2)).max().item<double>(), 1e-12);
}

TEST(FitTest, HoldsUnknownsToStopTheBodyWhereAsked) {
  const LcpNetwork network = two_unknowns();
  const Samples motion = noisy(sliding_block(40, 1), 3);
  for (const bool inertial : {false, true}) {
    const Tensor theta = fit(network, motion, near_block(network, 1), 80, {.inertial = inertial}, of_block(), {});
    const Tensor slopes = network->entry("q_weight", theta).select(-1, 0);
    const Tensor stopping = slopes * network->entry("G_bias", theta).squeeze(1);
    const Tensor left = 1 + stopping / at::diagonal(network->matrix(theta), 0, -2, -1);
    EXPECT_EQ(left.abs().max().item<double>() < 1e-3, inertial) << left;
  }
}

TEST(FitTest, PenalisesCouplings) {
  const LcpNetwork network = two_unknowns();
  const Samples motion = noisy(sliding_block(40, 1), 3);
  const auto largest = [&](double factor) {
    const Tensor theta = fit(network, motion, near_block(network, 1), 80, {.coupling = factor}, {}, {});
    return couplings(network, theta).abs().max().item<double>();
  };
  EXPECT_GT(largest(0), 1e-2);
  EXPECT_LT(largest(1e3), 1e-2);
}

TEST(FitTest, ChangesNothingOnceItIsStopped) {
  const LcpNetwork network = two_unknowns();
  const Tensor theta = near_block(network, 2);
  const auto stopped = [] { return true; };
  EXPECT_TRUE(at::equal(fit(network, sliding_block(40, 1), theta, 80, {}, {}, stopped), theta));
  EXPECT_TRUE(at::equal(train(network, sliding_block(40, 1), theta, 0, {}, stopped), theta));
}

TEST(FitTest, AdamLowersTheErrorByEachLoss) {
  const LcpNetwork network = two_unknowns();
  const Samples motion = sliding_block(40, 1);
  const Tensor start = near_block(network, 4);
  for (const NetworkLoss loss : {NetworkLoss::kPrediction, NetworkLoss::kBilevel, NetworkLoss::kOneSided}) {
    NetworkSearchOptions options;
    options.loss = loss;
    const Tensor theta = train(network, motion, start, 0, options, {});
    const Tensor before = root_mean_squares(network, start, motion), after = root_mean_squares(network, theta, motion);
    EXPECT_TRUE((after < 0.3 * before).all().item<bool>()) << static_cast<int>(loss) << before << after;
  }
}

}  // namespace lcp::learning::fit_test
