#include "network/candidate.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include <vector>

namespace lcp::training {
namespace {

// A network of one velocity with so many unknowns.
Candidate candidate(std::int64_t unknowns, double error, double rest = 1) {
  return {nn::LcpNetworkOptions(2, 1, unknowns), torch::Tensor(), error, error, rest, false};
}

TEST(Candidate, IsExactWhereItPredictsAndRestsAsTheSamplesDo) {
  EXPECT_TRUE(exact(candidate(1, 1e-12)));
  EXPECT_FALSE(exact(candidate(1, 1e-9)));
  EXPECT_TRUE(precise(candidate(1, 1e-12, 0.9)));
  EXPECT_FALSE(exact(candidate(1, 1e-12, 0.9)));
  EXPECT_EQ(score(candidate(1, 1e-12)), 0);
  EXPECT_NEAR(score(candidate(1, 0.1, 0.99)), 0.2, 1e-12);
}

TEST(Candidate, HasParametersThatMotionDependsOn) {
  Candidate c = candidate(2, 0.1);
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
  const Candidate alone = candidate(1, 1e-13), large = candidate(3, 1e-12), small = candidate(2, 1e-12);
  const torch::Tensor common = torch::rand({100, 1}, torch::kDouble);
  torch::Tensor other = common.clone();
  other[7][0] += 1;
  EXPECT_EQ(&most_agreed({&alone, &large, &small}, {other, common, common}), &small);
  EXPECT_TRUE(confirmed({other, common, common}));
  EXPECT_FALSE(confirmed({other, common}));
  EXPECT_NEAR(differences(other, {common, other})[0].item<double>(), 0.01, 1e-15);
}

TEST(Choice, OfEquallyGoodNetworksIsTheSimplest) {
  const Candidate large = candidate(4, 0.100), small = candidate(2, 0.101), poor = candidate(1, 0.2);
  EXPECT_EQ(&simplest({&large, &small, &poor}, 400, 100), &small);
  EXPECT_EQ(&simplest({&large, &small, &poor}, 4'000'000, 1'000'000), &large);
  const Candidate restless = candidate(1, 0.100, 0.9);
  EXPECT_EQ(&simplest({&large, &small, &restless}, 400, 100), &small);
  // Its error is so small that it counts as equal to the others, and it is simpler, but does not rest.
  const Candidate smaller = candidate(1, 0.034, 0.98);
  EXPECT_EQ(&simplest({&large, &small, &smaller}, 400, 100), &small);
  EXPECT_EQ(&simplest({&smaller, &poor}, 400, 100), &smaller);
}

}  // namespace
}  // namespace lcp::training
