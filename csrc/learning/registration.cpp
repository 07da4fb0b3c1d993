// The functions of this module as operators, for Python. What C++ calls lambda is called forces.
#include <torch/library.h>

#include <tuple>

#include "lcp/learning/bilevel_loss.h"
#include "lcp/learning/direct_loss.h"
#include "lcp/learning/identifiability.h"
#include "lcp/learning/markov_chain.h"
#include "lcp/learning/penalty_loss.h"
#include "ops/composite.h"

namespace lcp::learning {
namespace {

using at::Tensor;

std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor> bilevel_loss_of(const Tensor& G, const Tensor& f, const Tensor& B,
                                                                   const Tensor& beta, double prediction,
                                                                   double complementarity, double violation,
                                                                   bool hard) {
  const BilevelLoss loss = bilevel_loss(G, f, B, beta, {prediction, complementarity, violation, hard});
  return {loss.value, loss.lambda, loss.violation, loss.multiplier, loss.status};
}

std::tuple<Tensor, Tensor, Tensor, Tensor> direct_loss_of(const Tensor& h, const Tensor& target, const Tensor& forces,
                                                          bool relu, double prediction, double complementarity,
                                                          double nonnegativity, bool squared, bool resting) {
  const DirectLoss loss =
      direct_loss(h, target, forces, relu, {prediction, complementarity, nonnegativity, squared, resting});
  return {loss.total, loss.prediction, loss.complementarity, loss.nonnegativity};
}

std::tuple<Tensor, Tensor, Tensor> penalty_loss_of(const Tensor& G, const Tensor& f, const Tensor& z,
                                                   double complementarity, double nonnegativity, bool squared) {
  const PenaltyLoss loss = penalty_loss(G, f, z, {complementarity, nonnegativity, squared});
  return {loss.total, loss.complementarity, loss.nonnegativity};
}

std::tuple<std::int64_t, double, Tensor> identifiability_of(const Tensor& features) {
  const Identifiability found = identifiability(features);
  return {found.rank, found.condition, found.null_space};
}

Tensor chain_log_likelihood(const Tensor& log_initial, const Tensor& log_transition, const Tensor& log_observation) {
  return log_likelihood({log_initial, log_transition}, log_observation);
}

Tensor chain_predicted_states(const Tensor& log_initial, const Tensor& log_transition, const Tensor& log_observation) {
  return predicted_states({log_initial, log_transition}, log_observation);
}

LCP_LIBRARY_FRAGMENT(library) {
  const auto define = [&](const char* schema, auto function) { ops::define_composite(library, schema, function); };
  define(
      "_bilevel_loss(Tensor G, Tensor f, Tensor B, Tensor beta, *, float prediction=1.0, float complementarity=1.0, "
      "float violation=10.0, bool hard=False) -> "
      "(Tensor value, Tensor forces, Tensor violation, Tensor multiplier, Tensor status)",
      TORCH_FN(bilevel_loss_of));
  define(
      "_direct_loss(Tensor h, Tensor target, Tensor forces, *, bool relu=False, float prediction=1.0, "
      "float complementarity=0.01, float nonnegativity=1.0, bool squared=False, bool resting=True) -> "
      "(Tensor total, Tensor prediction, Tensor complementarity, Tensor nonnegativity)",
      TORCH_FN(direct_loss_of));
  define(
      "_penalty_loss(Tensor G, Tensor f, Tensor z, *, float complementarity=1.0, float nonnegativity=1.0, "
      "bool squared=False) -> (Tensor total, Tensor complementarity, Tensor nonnegativity)",
      TORCH_FN(penalty_loss_of));
  define("_chain_log_likelihood(Tensor log_initial, Tensor log_transition, Tensor log_observation) -> Tensor",
         TORCH_FN(chain_log_likelihood));
  define("_chain_predicted_states(Tensor log_initial, Tensor log_transition, Tensor log_observation) -> Tensor",
         TORCH_FN(chain_predicted_states));
  // Its results are numbers, so that it cannot be transformed.
  library.def("_identifiability(Tensor features) -> (int rank, float condition, Tensor null_space)",
              TORCH_FN(identifiability_of));
}

}  // namespace
}  // namespace lcp::learning
