#include "learning/network/candidate.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include <vector>

namespace lcp::learning::candidate_test {

using namespace fitting;

// A network of one velocity with so many unknowns.
NetworkCandidate candidate(std::int64_t unknowns, double error, double rest = 1) {
  return {nn::LcpNetworkOptions(2, 1, unknowns), torch::Tensor(), error, error, rest, false};
}

TEST(Candidate, IsExactWhereItPredictsAndRestsAsTheSamplesDo) {
  EXPECT_TRUE(candidate(1, 1e-12).exact());
  EXPECT_FALSE(candidate(1, 1e-9).exact());
  EXPECT_TRUE(candidate(1, 1e-12, 0.9).precise());
  EXPECT_FALSE(candidate(1, 1e-12, 0.9).exact());
  EXPECT_EQ(score(candidate(1, 1e-12)), 0);
  EXPECT_NEAR(score(candidate(1, 0.1, 0.99)), 0.2, 1e-12);
}

TEST(Candidate, HasParametersThatMotionDependsOn) {
  NetworkCandidate c = candidate(2, 0.1);
  const double uncoupled = parameters(c);
  c.inertial = true;
  EXPECT_EQ(parameters(c), uncoupled - 2);
  c.inertial = false;
  c.odd = true;
  EXPECT_EQ(parameters(c), uncoupled / 2);
  c.odd = false;
  c.coupled = true;
  EXPECT_EQ(parameters(c), uncoupled + 2);
}

TEST(Choice, OfExactNetworksIsTheOneThatAgreesMost) {
  const NetworkCandidate alone = candidate(1, 1e-13), large = candidate(3, 1e-12), small = candidate(2, 1e-12);
  const torch::Tensor common = torch::rand({100, 1}, torch::kDouble);
  torch::Tensor other = common.clone();
  other[7][0] += 1;
  EXPECT_EQ(&most_agreed({&alone, &large, &small}, {other, common, common}), &small);
  EXPECT_TRUE(confirmed({other, common, common}));
  EXPECT_FALSE(confirmed({other, common}));
  EXPECT_NEAR(differences(other, {common, other})[0].item<double>(), 0.01, 1e-15);
}

TEST(Choice, OfEquallyGoodNetworksIsTheSimplest) {
  const NetworkCandidate large = candidate(4, 0.100), small = candidate(2, 0.101), poor = candidate(1, 0.2);
  EXPECT_EQ(&simplest({&large, &small, &poor}, 400, 100), &small);
  EXPECT_EQ(&simplest({&large, &small, &poor}, 4'000'000, 1'000'000), &large);
  const NetworkCandidate restless = candidate(1, 0.100, 0.9);
  EXPECT_EQ(&simplest({&large, &small, &restless}, 400, 100), &small);
  // Its error is so small that it counts as equal to the others, and it is simpler, but does not rest.
  const NetworkCandidate smaller = candidate(1, 0.034, 0.98);
  EXPECT_EQ(&simplest({&large, &small, &smaller}, 400, 100), &small);
  EXPECT_EQ(&simplest({&smaller, &poor}, 400, 100), &smaller);
}

}  // namespace lcp::learning::candidate_test
