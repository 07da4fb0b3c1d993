#include "lcp/learning/markov_chain.h"

#include <ATen/ATen.h>

#include <vector>

namespace lcp::learning {
namespace {

using at::Tensor;

// log p(state of the next step, observations so far), from log p(state of this step, observations so far).
Tensor advanced(const Tensor& log_joint, const MarkovChain& chain) {
  return at::logsumexp(log_joint.unsqueeze(-1) + chain.log_transition, {-2});
}

void check(const MarkovChain& chain, const Tensor& log_observation) {
  TORCH_CHECK(chain.log_initial.dim() == 1, "log_initial must be [s]; got ", chain.log_initial.sizes());
  const std::int64_t s = chain.log_initial.size(0);
  TORCH_CHECK(chain.log_transition.dim() == 2 && chain.log_transition.size(0) == s && chain.log_transition.size(1) == s,
              "log_transition must be [s, s] with s = ", s, "; got ", chain.log_transition.sizes());
  TORCH_CHECK(log_observation.dim() >= 2 && log_observation.size(-1) == s && log_observation.size(-2) > 0,
              "log_observation must be [..., steps, s] with s = ", s, " and steps > 0; got ", log_observation.sizes());
}

}  // namespace

Tensor log_likelihood(const MarkovChain& chain, const Tensor& log_observation) {
  check(chain, log_observation);
  Tensor log_joint = chain.log_initial + log_observation.select(-2, 0);
  for (std::int64_t k = 1; k < log_observation.size(-2); ++k) {
    log_joint = advanced(log_joint, chain) + log_observation.select(-2, k);
  }
  return at::logsumexp(log_joint, {-1});
}

Tensor predicted_states(const MarkovChain& chain, const Tensor& log_observation) {
  check(chain, log_observation);
  Tensor log_prior = chain.log_initial.expand_as(log_observation.select(-2, 0));
  std::vector<Tensor> all = {log_prior.softmax(-1)};
  all.reserve(static_cast<std::size_t>(log_observation.size(-2)));
  for (std::int64_t k = 1; k < log_observation.size(-2); ++k) {
    log_prior = advanced(log_prior + log_observation.select(-2, k - 1), chain);
    all.push_back(log_prior.softmax(-1));
  }
  return at::stack(all, -2);
}

}  // namespace lcp::learning
