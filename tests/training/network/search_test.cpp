#include "network/search.h"

#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "run/random.h"
#include "support/tensors.h"

namespace lcp::training::search_test {

using nn::LcpNetwork;
using nn::LcpNetworkOptions;
using testing::everywhere;
using torch::Tensor;

// Steps of a sliding block with dt = m = mu m g = 1.
Motion sliding_block(std::int64_t count, std::int64_t seed) {
  const Tensor x = torch::randn({count, 2}, generator(seed, Stream::kSpeeds), torch::kDouble);
  const Tensor s = x.sum(-1, true);
  return {x, (s - 1).relu() - (-s - 1).relu()};
}

SearchResult found(std::int64_t samples, std::int64_t unknowns, SearchOptions options = {}) {
  const LcpNetwork network(LcpNetworkOptions(2, 1, unknowns));
  options.starts = options.finished = 32;
  return search(network, sliding_block(samples, 1), sliding_block(samples / 4, 2), options);
}

TEST(SearchTest, LearnsASlidingBlockFromMotionAlone) {
  const SearchResult result = found(40, 2);
  EXPECT_LT(result.validation_error[0].item<double>(), 1e-14);
  EXPECT_EQ(result.unseen[0].item<double>(), 0);
  const LcpNetwork network(LcpNetworkOptions(2, 1, 2));
  const Motion heldout = sliding_block(1000, 3);
  const Tensor predicted = network->step(heldout.x, result.theta[0]).y;
  EXPECT_LT((predicted - heldout.v_next).abs().max().item<double>(), 1e-13);
  EXPECT_TRUE(torch::equal(predicted == 0, heldout.v_next == 0));
}

TEST(SearchTest, OrdersWhatItFinds) {
  const SearchResult result = found(40, 2);
  const Tensor exact = result.validation_error < 1e-12;
  const std::int64_t count = exact.sum().item<std::int64_t>();
  ASSERT_GE(count, 1);
  EXPECT_TRUE(everywhere(exact.slice(0, 0, count)));
  const auto ascends = [](const Tensor& x) { return everywhere(x.slice(0, 1) >= x.slice(0, 0, -1)); };
  EXPECT_TRUE(ascends(result.unseen.slice(0, 0, count)));
  EXPECT_TRUE(ascends(result.validation_error.slice(0, count)));
}

TEST(SearchTest, RepeatsItselfForASeed) {
  const SearchResult one = found(20, 1), two = found(20, 1);
  EXPECT_TRUE(torch::equal(one.theta, two.theta));
  SearchOptions other;
  other.seed = 1;
  EXPECT_FALSE(torch::equal(one.theta, found(20, 1, other).theta));
}

}  // namespace lcp::training::search_test
