// The functions of this module as operators, for Python. What C++ calls lambda is called forces.
#include <torch/library.h>

#include "lcp/learning/bilevel_loss.h"
#include "lcp/learning/direct_loss.h"
#include "lcp/learning/identifiability.h"
#include "lcp/learning/markov_chain.h"
#include "lcp/learning/penalty_loss.h"
#include "ops/composite.h"

namespace lcp::learning {

LCP_MEMBERS(BilevelWeights, prediction, complementarity, violation, hard)
LCP_MEMBERS(BilevelLoss, value, forces, violation, multiplier, status)
LCP_MEMBERS(DirectLossWeights, prediction, complementarity, nonnegativity, squared, resting)
LCP_MEMBERS(DirectLoss, total, prediction, complementarity, nonnegativity)
LCP_MEMBERS(PenaltyLossWeights, complementarity, nonnegativity, squared)
LCP_MEMBERS(PenaltyLoss, total, complementarity, nonnegativity)
LCP_MEMBERS(Identifiability, rank, condition, null_space)
LCP_MEMBERS(MarkovChain, log_initial, log_transition)

namespace {

LCP_LIBRARY_FRAGMENT(library) {
  ops::define<bilevel_loss>(library, "_bilevel_loss(G, f, B, beta, *, weights=)");
  ops::define<direct_loss>(library, "_direct_loss(h, target, forces, *, relu=False, weights=)");
  ops::define<penalty_loss>(library, "_penalty_loss(G, f, z, *, weights=)");
  ops::define<log_likelihood>(library, "_chain_log_likelihood(chain, log_observation)");
  ops::define<predicted_states>(library, "_chain_predicted_states(chain, log_observation)");
  ops::define_plain<at::Tensor>(library, "_identifiability(features)", LCP_CALL(identifiability));
}

}  // namespace
}  // namespace lcp::learning
