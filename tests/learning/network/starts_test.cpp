#include "learning/network/starts.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include <vector>

#include "learning/network/blocks.h"
#include "learning/network/random.h"

namespace lcp::learning::starts_test {

using namespace fitting;
using nn::LcpNetwork;
using nn::LcpNetworkOptions;
using torch::Tensor;

constexpr double kPenalty = 0.1;

LcpNetwork with_unknowns(std::int64_t unknowns) { return LcpNetwork(LcpNetworkOptions(2, 1, unknowns)); }

std::vector<StartGroup> drawn(const LcpNetwork& network, const std::vector<NetworkCandidate>& parents) {
  return draw_starts(network, 40, parents, sliding_block(50, 1), kPenalty, generator(0, Stream::kStarts));
}

NetworkCandidate block() {
  const LcpNetwork network = with_unknowns(2);
  return {network->options, theta_of_block(network), 0, 0, 1, false};
}

// Whether each row of q is 0 at one of the samples: [starts, unknowns].
Tensor begins_at_a_sample(const LcpNetwork& network, const Tensor& theta) {
  const Tensor q = network->parts(sliding_block(50, 1).x, theta.unsqueeze(1)).q;
  return (q.abs() < 1e-12).any(1);
}

TEST(StartsTest, AreRandomWithoutParents) {
  const LcpNetwork network = with_unknowns(3);
  const std::vector<StartGroup> groups = drawn(network, {});
  ASSERT_EQ(groups.size(), 2);
  EXPECT_EQ(groups[0].rest_penalty, kPenalty);
  EXPECT_EQ(groups[1].rest_penalty, 0);
  for (const StartGroup& group : groups) {
    EXPECT_EQ(group.theta.size(0), 20);
    EXPECT_TRUE(begins_at_a_sample(network, group.theta).all().item<bool>());
  }
  EXPECT_TRUE(at::equal(drawn(network, {})[1].theta, groups[1].theta));
}

TEST(StartsTest, GrowFromParentsByAQuarter) {
  const LcpNetwork network = with_unknowns(3);
  const std::vector<StartGroup> groups = drawn(network, {block()});
  ASSERT_EQ(groups.size(), 4);
  for (std::size_t g = 0; g < 4; ++g) {
    EXPECT_EQ(groups[g].theta.size(0), g < 2 ? 5 : 15);
    EXPECT_EQ(groups[g].rest_penalty, g % 2 == 0 ? kPenalty : 0);
  }
  const Tensor of_block = with_unknowns(2)->entry("q_weight", block().theta);
  const Tensor grown = network->entry("q_weight", groups[0].theta);
  EXPECT_TRUE(at::equal(grown.slice(1, 0, 2), of_block.expand({5, 2, 2})));
  EXPECT_TRUE(begins_at_a_sample(network, groups[0].theta).select(1, 2).all().item<bool>());
}

TEST(StartsTest, ReplaceUnknownsThatAreNeverActive) {
  const LcpNetwork network = with_unknowns(2);
  NetworkCandidate parent = block();
  with_unknowns(2)->entry("q_bias", parent.theta)[0].fill_(100);
  const Tensor theta = drawn(network, {parent})[0].theta;
  // The second unknown of the parent is the first now.
  const Tensor kept = with_unknowns(2)->entry("q_weight", parent.theta)[1];
  EXPECT_TRUE(at::equal(network->entry("q_weight", theta).select(1, 0), kept.expand({5, 2})));
  EXPECT_TRUE(begins_at_a_sample(network, theta).select(1, 1).all().item<bool>());
}

TEST(StartsTest, AreTheParentsWithoutOneOrTwoUnknownsWhereTheseHaveMore) {
  const LcpNetwork larger = with_unknowns(3);
  const Tensor theta = drawn(larger, {block()})[0].theta[0];
  const NetworkCandidate parent{larger->options, theta, 0, 0, 1, false};
  const LcpNetwork network = with_unknowns(2);
  const std::vector<StartGroup> groups = drawn(network, {parent});
  ASSERT_EQ(groups.size(), 1);
  EXPECT_EQ(groups[0].rest_penalty, kPenalty);
  EXPECT_EQ(groups[0].theta.size(0), 6);
  const Tensor rows = larger->entry("q_weight", theta), left = network->entry("q_weight", groups[0].theta);
  EXPECT_TRUE(at::equal(left[0], rows.slice(0, 1, 3)));  // without the first
  EXPECT_TRUE(at::equal(left[4], rows.slice(0, 0, 2)));  // without the last
}

}  // namespace lcp::learning::starts_test
