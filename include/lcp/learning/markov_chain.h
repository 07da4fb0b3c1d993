// The likelihood of observations of a process that is in one of several hidden states at each step.
//
//   [Rabiner] Rabiner: A tutorial on hidden Markov models and selected applications in speech recognition, Proceedings
//             of the IEEE 77, 1989.
#pragma once

#include <ATen/core/Tensor.h>

#include "lcp/export.h"

namespace lcp::learning {

struct MarkovChain {
  at::Tensor log_initial;     ///< [s], log of the probabilities of the states at the first step
  at::Tensor log_transition;  ///< [s, s], log of the probability of state j (column) after state i (row)
};

/// log p(observations), [...], by the forward recursion [Rabiner, sec. III A]. It is differentiable; its derivative in
/// log_observation is the probability of each state at each step, given all observations.
///   log_observation: [..., steps, s], log of the density of each step's observation in each state; 0 in every state
///   where a step was not observed.
/// Throws c10::Error where a shape does not fit.
LCP_API at::Tensor log_likelihood(const MarkovChain& chain, const at::Tensor& log_observation);

/// The prediction of the chain: the probability of each state at each step, given the observations of the steps before
/// it, [..., steps, s].
LCP_API at::Tensor predicted_states(const MarkovChain& chain, const at::Tensor& log_observation);

}  // namespace lcp::learning
