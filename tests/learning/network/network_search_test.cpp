#include "lcp/learning/network_search.h"

#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "learning/network/blocks.h"

namespace lcp::learning::network_search_test {

using nn::LcpNetwork;
using nn::LcpNetworkOptions;
using torch::Tensor;

NetworkSearchOptions options(std::int64_t outputs = 1) {
  NetworkSearchOptions options;
  options.parts = LcpNetworkOptions(2, outputs, 1);
  options.starts = 32;
  options.network = false;
  options.first_velocity = 0;
  return options;
}

NetworkSearch done(const Samples& training, const Samples& validation, const NetworkSearchOptions& options) {
  NetworkSearch search(training, validation, options);
  while (!search.finished()) search.advance();
  return search;
}

NetworkSearch learned(std::int64_t samples, const NetworkSearchOptions& options) {
  return done(sliding_block(samples, 1), sliding_block(samples / 4, 2), options);
}

TEST(NetworkSearchTest, LearnsASlidingBlockFromMotionAlone) {
  const NetworkSearch search = learned(40, options());
  const NetworkCandidate best = search.best(), refitted = search.refitted(best, search.all());
  EXPECT_LT(best.validation_error, 1e-14);
  EXPECT_EQ(search.disagreement(best), 0);
  EXPECT_EQ(best.rest, 1);
  EXPECT_EQ(best.options.unknowns(), 2);
  EXPECT_EQ(search.rounds().size(), 1);
  const Samples heldout = sliding_block(1000, 3);
  for (const NetworkCandidate& one : {best, refitted}) {
    const Tensor predicted = search.network(one.options)->step(heldout.x, one.theta).y;
    EXPECT_LT((predicted - heldout.y).abs().max().item<double>(), 1e-13);
    EXPECT_TRUE(torch::equal(predicted == 0, heldout.y == 0));
  }
}

TEST(NetworkSearchTest, FindsTheNumberOfUnknowns) {
  // Two velocities, each of which has its own friction: 4 unknowns.
  const auto blocks = [](std::int64_t count, std::int64_t seed) {
    const Tensor x = torch::randn({count, 2}, lcp::detail::seeded_generator(seed, 2), torch::kDouble);
    return Samples{x, (x - 0.5).relu() - (-x - 0.5).relu()};
  };
  const NetworkSearch search = done(blocks(200, 1), blocks(50, 2), options(2));
  EXPECT_LT(search.best().validation_error, 1e-10);
  EXPECT_EQ(search.best().options.unknowns(), 4);
  EXPECT_LE(static_cast<std::int64_t>(search.rounds().size()), search.most_rounds());

  NetworkSearchOptions given = options(2);
  given.unknowns = 1;
  const NetworkSearch one = done(blocks(50, 1), blocks(20, 2), given);
  EXPECT_EQ(one.best().options.unknowns(), 1);
  EXPECT_EQ(one.rounds().size(), 1);
}

TEST(NetworkSearchTest, TriesANetworkWhereAnAffineMapIsNotEnough) {
  const auto curved = [](std::int64_t count, std::int64_t seed) {
    const Tensor x = torch::randn({count, 2}, lcp::detail::seeded_generator(seed, 2), torch::kDouble);
    return Samples{x, (x.slice(1, 0, 1).sin() + x.slice(1, 1, 2) - 0.5).relu()};
  };
  NetworkSearchOptions given = options();
  given.network = true;
  given.unknowns = 1;
  given.parts.hidden(3);
  const NetworkSearch search = done(curved(200, 1), curved(50, 2), given);
  ASSERT_EQ(search.rounds().size(), 2);
  EXPECT_EQ(search.best().options.q(), nn::Dependence::kNetwork);
  EXPECT_LT(search.best().validation_error, 0.2 * search.rounds()[0].best[0].validation_error);
  EXPECT_GT(search.best().rest, 0.99);
}

TEST(NetworkSearchTest, ChoosesTheSimplerOfEqualNetworks) {
  // Noise hides what more unknowns would change.
  const NetworkSearch search = done(noisy(sliding_block(200, 1), 3), noisy(sliding_block(50, 2), 3), options());
  EXPECT_GT(search.rounds().size(), 2);
  EXPECT_EQ(search.best().options.unknowns(), 2);
  EXPECT_FALSE(search.best().coupled);
  const Samples heldout = sliding_block(1000, 3);
  const NetworkCandidate best = search.refitted(search.best(), search.all());
  const Tensor error = search.network(best.options)->step(heldout.x, best.theta).y - heldout.y;
  EXPECT_LT(error.square().mean().sqrt().item<double>(), 0.03);
}

TEST(NetworkSearchTest, KeepsANetworkThatAFitWouldMoveFarBeyondItsError) {
  const NetworkSearch search = learned(40, options());
  const NetworkCandidate best = search.best();
  Samples other = search.all();
  other.y = 2 * other.y;
  EXPECT_FALSE(at::allclose(search.refitted(best, other).theta, best.theta));
  EXPECT_TRUE(at::equal(search.simplified(best, other).theta, best.theta));
}

TEST(NetworkSearchTest, AssumesWhatNoisyMotionDoesNotContradict) {
  NetworkSearchOptions given = options();
  given.unknowns = 2;
  const auto error = [](const NetworkSearch& search, const NetworkCandidate& c, const Samples& motion) {
    return (search.network(c.options)->step(motion.x, c.theta).y - motion.y).square().mean().sqrt().item<double>();
  };
  const NetworkSearch block = done(noisy(sliding_block(400, 1), 3), noisy(sliding_block(100, 2), 4), given);
  const NetworkCandidate free = block.refitted(block.best(), block.all()),
                         held = block.simplified(block.best(), block.all());
  EXPECT_TRUE(held.odd && held.inertial);
  const Samples heldout = sliding_block(1000, 5);
  EXPECT_LT(error(block, held, heldout), 0.01);
  EXPECT_LT(error(block, held, heldout), 0.7 * error(block, free, heldout));
  const Tensor fast = torch::tensor({{3., 0.}, {4., 0.}, {-3., 0.}}, torch::kDouble);
  const Tensor y = block.network(held.options)->step(fast, held.theta).y;
  EXPECT_NEAR((y[1] - y[0]).item<double>(), 1, 1e-4);
  EXPECT_NEAR((y[2] + y[0]).item<double>(), 0, 5e-3);

  // On a slope motion is not odd, and with drag a part of the velocity is left.
  const auto slowed = [&](std::int64_t count, std::int64_t seed) {
    Samples motion = sliding_block(count, seed);
    const Tensor s = motion.x.matmul(torch::tensor({{0.6}, {1.}}, torch::kDouble)) + 0.3;
    return Samples{motion.x, (s - 1).relu() - (-s - 1).relu()};
  };
  const NetworkSearch drag = done(noisy(slowed(400, 1), 3), noisy(slowed(100, 2), 4), given);
  const NetworkCandidate kept = drag.simplified(drag.best(), drag.all());
  EXPECT_FALSE(kept.odd || kept.inertial);
  EXPECT_LT(error(drag, kept, slowed(1000, 5)), 0.03);
}

TEST(NetworkSearchTest, RepeatsItselfForASeedAndAnyNumberOfThreads) {
  NetworkSearchOptions given = options();
  given.unknowns = 2;
  const NetworkCandidate one = learned(20, given).best();
  given.threads = 3;
  EXPECT_TRUE(torch::equal(one.theta, learned(20, given).best().theta));
  given.seed = 1;
  EXPECT_FALSE(torch::equal(one.theta, learned(20, given).best().theta));
}

TEST(NetworkSearchTest, LearnsByEachLoss) {
  for (const NetworkLoss loss : {NetworkLoss::kPrediction, NetworkLoss::kBilevel, NetworkLoss::kOneSided}) {
    NetworkSearchOptions given = options();
    given.loss = loss;
    given.kappa = 0.1;
    const NetworkCandidate best = learned(100, given).best();
    EXPECT_LT(best.validation_error, 1e-13);
    EXPECT_EQ(best.options.unknowns(), 2);
    // Adam alone comes near: the loss is that of the truth, not only a start of the other method.
    given.finishing_iterations = 0;
    given.iterations = 1000;
    given.unknowns = loss == NetworkLoss::kOneSided ? 0 : 2;
    const NetworkSearch by_adam = learned(100, given);
    EXPECT_LT(by_adam.rounds()[0].best[0].validation_error, 0.05);
    // Without least squares no assumption can be fitted, so that none is made.
    EXPECT_FALSE(by_adam.simplified(by_adam.best(), by_adam.all()).odd);
  }
}

TEST(NetworkSearchTest, ChoosesTheExactNetworkWithWhichOthersAgree) {
  // No sample slides backwards, and how a network does it is its choice: max(0, s - 1) - slope max(0, -s - 1).
  const auto forwards = [](std::int64_t count, std::int64_t seed) {
    Samples all = sliding_block(count, seed);
    return all.at((all.x.sum(-1) > -1).nonzero().squeeze(-1));
  };
  NetworkSearch search(forwards(200, 1), forwards(50, 2), options());
  // Of more than two unknowns the others are never active.
  const auto with_slope = [&](double slope, std::int64_t unknowns = 2) {
    const LcpNetworkOptions parts(2, 1, unknowns);
    const LcpNetwork network = search.network(parts);
    const Tensor others = torch::zeros({unknowns - 2}, torch::kDouble);
    Tensor theta = torch::zeros({network->size()}, torch::kDouble);
    network->entry("M", theta).copy_(torch::eye(unknowns) * std::sqrt(1 - parts.definiteness()));
    network->entry("G_bias", theta)
        .copy_(torch::cat({torch::tensor({1., -slope}), others}).unsqueeze(0) / search.output_unit());
    network->entry("q_bias", theta).fill_(1);
    network->entry("q_weight", theta)
        .copy_(torch::cat({torch::tensor({-1., 1.}), others}).unsqueeze(1) * search.input_unit());
    return NetworkCandidate{parts, theta, 0, 0, 1, false};
  };
  // One exact network is not enough, nor are two that differ: a reduced one is tried, then others.
  search.restore({{32, {with_slope(1)}}});
  EXPECT_FALSE(search.disagreement(search.best()).has_value());
  EXPECT_FALSE(search.finished());
  search.restore({{32, {with_slope(2), with_slope(1)}}});
  EXPECT_FALSE(search.finished());
  const double apart = search.disagreement(search.best()).value();
  EXPECT_GT(apart, 0.05);
  EXPECT_LT(apart, 0.5);
  // The third agrees with the second, which is confirmed by it.
  search.restore({{32, {with_slope(2), with_slope(1)}}, {32, {with_slope(1)}}});
  EXPECT_TRUE(search.finished());
  EXPECT_TRUE(torch::equal(search.best().theta, with_slope(1).theta));
  EXPECT_DOUBLE_EQ(search.disagreement(search.best()).value(), apart / 2);
  // Rounds with as many unknowns have twice the starts.
  search.restore({{32, {with_slope(2)}}, {32, {with_slope(1)}}});
  search.advance();
  EXPECT_EQ(search.rounds().back().starts, 128);
  // After four rounds of the fewest unknowns come others with as many as the first exact network.
  search.restore({{32, {with_slope(1, 3)}},
                  {32, {with_slope(2)}},
                  {64, {with_slope(3)}},
                  {128, {with_slope(4)}},
                  {256, {with_slope(5)}}});
  search.advance();
  EXPECT_EQ(search.rounds().back().starts, 64);
  EXPECT_EQ(search.rounds().back().best.front().options.unknowns(), 3);
}

TEST(NetworkSearchTest, CountsSlowMotionAsRestWhereAsked) {
  // Each sample that should rest moves by .01: without the option none of them rests.
  Samples training = sliding_block(100, 1), validation = sliding_block(25, 2);
  for (Samples* motion : {&training, &validation}) motion->y = at::where(motion->y == 0, 0.01, motion->y);
  NetworkSearchOptions given = options();
  given.unknowns = 2;
  given.rest_below = 0.02;
  const NetworkCandidate best = done(training, validation, given).best();
  EXPECT_GT(best.rest, 0.9);
}

TEST(NetworkSearchTest, ARoundThatIsStoppedChangesNothing) {
  NetworkSearch search(sliding_block(40, 1), sliding_block(10, 2), options());
  search.advance([] { return true; });
  EXPECT_TRUE(search.rounds().empty());
  search.advance();
  NetworkSearch resumed(sliding_block(40, 1), sliding_block(10, 2), options());
  resumed.restore(search.rounds());
  EXPECT_TRUE(resumed.finished());
  EXPECT_TRUE(torch::equal(resumed.best().theta, search.best().theta));
}

TEST(NetworkSearchTest, ARoundThatIsHurriedKeepsItsNetworksAsTheyAre) {
  NetworkSearch search(sliding_block(40, 1), sliding_block(10, 2), options());
  std::int64_t asked = 0;
  search.advance({}, {}, [&] { return ++asked > 20; });
  ASSERT_EQ(search.rounds().size(), 1);
  EXPECT_TRUE(std::isfinite(search.best().training_error));
}

TEST(NetworkSearchTest, TellsTheProgressOfARound) {
  NetworkSearchOptions given = options();
  given.threads = 2;
  NetworkSearch search(sliding_block(40, 1), sliding_block(10, 2), given);
  std::vector<double> told;
  search.advance({}, [&](double done) { told.push_back(done); });
  EXPECT_GT(told.size(), 10);
  EXPECT_TRUE(std::is_sorted(told.begin(), told.end()));
  EXPECT_GT(told.front(), 0);
  EXPECT_EQ(told.back(), 1);
}

}  // namespace lcp::learning::network_search_test
