#include "lcp/learning/markov_chain.h"

#include <gtest/gtest.h>
#include <torch/autograd.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <utility>
#include <vector>

#include "support/finite_differences.h"
#include "support/tensors.h"

namespace lcp::learning {
namespace {

using testing::gradient_error;
using testing::Inputs;
using testing::largest;
using torch::Tensor;

constexpr std::int64_t kStates = 3, kSteps = 4;

class MarkovChainTest : public ::testing::Test {
 protected:
  MarkovChainTest() {
    torch::manual_seed(5);
    chain_ = {torch::randn({kStates}, torch::kDouble).log_softmax(-1),
              torch::randn({kStates, kStates}, torch::kDouble).log_softmax(-1)};
    observed_ = torch::randn({2, kSteps, kStates}, torch::kDouble);
  }

  // The probability of each sequence of states with the observations, [3 ^ 4, 2], and its states, [3 ^ 4, 4].
  std::pair<Tensor, Tensor> all_sequences() const {
    const Tensor states = torch::cartesian_prod(std::vector<Tensor>(kSteps, torch::arange(kStates)));
    Tensor log_joint = chain_.log_initial.index_select(0, states.select(1, 0)).unsqueeze(-1);
    for (std::int64_t k = 0; k < kSteps; ++k) {
      const Tensor now = states.select(1, k);
      if (k > 0) log_joint = log_joint + chain_.log_transition.index({states.select(1, k - 1), now}).unsqueeze(-1);
      log_joint = log_joint + observed_.select(1, k).index_select(1, now).t();
    }
    return {log_joint.exp(), states};
  }

  MarkovChain chain_;
  Tensor observed_;  // [2, steps, states]
};

TEST_F(MarkovChainTest, SumsOverAllSequencesOfStates) {
  EXPECT_LT(largest(log_likelihood(chain_, observed_) - all_sequences().first.sum(0).log()), 1e-14);
}

TEST_F(MarkovChainTest, HasTheProbabilitiesOfStatesAsDerivative) {
  const auto [joint, states] = all_sequences();
  const Tensor leaf = observed_.clone().requires_grad_();
  const Tensor gradient = torch::autograd::grad({log_likelihood(chain_, leaf).sum()}, {leaf})[0];
  for (std::int64_t k = 0; k < kSteps; ++k) {
    for (std::int64_t state = 0; state < kStates; ++state) {
      const Tensor there = (states.select(1, k) == state).unsqueeze(-1);
      EXPECT_LT(largest((joint * there).sum(0) / joint.sum(0) - gradient.select(1, k).select(-1, state)), 1e-14);
    }
  }
}

TEST_F(MarkovChainTest, HasTheGradientOfCentralDifferences) {
  const auto f = [](const Inputs& x) { return log_likelihood({x[0], x[1]}, x[2]); };
  EXPECT_LT(gradient_error(f, {chain_.log_initial, chain_.log_transition, observed_}), 1e-8);
}

TEST_F(MarkovChainTest, PredictsStatesFromEarlierStepsOnly) {
  const Tensor predicted = predicted_states(chain_, observed_);
  EXPECT_LT(largest(predicted.select(1, 0) - chain_.log_initial.exp()), 1e-15);
  const auto [joint, states] = all_sequences();
  // p(state of the last step, observations but the last) is the joint probability over the density of the last one.
  const Tensor last = states.select(1, kSteps - 1);
  const Tensor before = joint / observed_.select(1, kSteps - 1).exp().index_select(1, last).t();
  for (std::int64_t state = 0; state < kStates; ++state) {
    const Tensor part = (before * (last == state).unsqueeze(-1)).sum(0) / before.sum(0);
    EXPECT_LT(largest(predicted.select(1, kSteps - 1).select(-1, state) - part), 1e-14);
  }
}

TEST_F(MarkovChainTest, IgnoresStepsWithoutAnObservation) {
  const Tensor padded = torch::constant_pad_nd(observed_, {0, 0, 0, 3});
  EXPECT_LT(largest(log_likelihood(chain_, padded) - log_likelihood(chain_, observed_)), 1e-14);
}

TEST_F(MarkovChainTest, RefusesShapesThatDoNotFit) {
  EXPECT_THROW(log_likelihood(chain_, observed_.slice(-1, 0, 2)), c10::Error);
  EXPECT_THROW(log_likelihood({chain_.log_initial, chain_.log_initial}, observed_), c10::Error);
  EXPECT_THROW(log_likelihood({chain_.log_transition, chain_.log_transition}, observed_), c10::Error);
  EXPECT_THROW(predicted_states(chain_, observed_.slice(1, 0, 0)), c10::Error);
}

}  // namespace
}  // namespace lcp::learning
