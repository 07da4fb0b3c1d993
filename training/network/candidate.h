// Networks that a search has found, and the choice among them.
//
//   [Schwarz] Schwarz: Estimating the dimension of a model, Annals of Statistics 6, 1978.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <vector>

#include "lcp/nn/lcp_network.h"

namespace lcp::training {

/// A learned network: its options with the units of the data, and its parameters.
struct Candidate {
  nn::LcpNetworkOptions options;
  torch::Tensor theta;      ///< [size]
  double training_error;    ///< root of the mean square, relative to the units of the outputs
  double validation_error;  ///< the same
  double rest;              ///< the share of the resting training samples that it predicts to rest exactly
  bool coupled;             ///< whether M has entries beside its diagonal
  bool odd = false;         ///< whether it was fitted to mirrored samples, too, see Search::simplified
  bool inertial = false;    ///< whether its unknowns are held to stop the body, see Search::simplified
};

/// A network with these options and units.
nn::LcpNetwork make_network(const nn::LcpNetworkOptions& options, const torch::Tensor& input_unit,
                            const torch::Tensor& output_unit);

/// Relative errors below this are round-off.
inline constexpr double kExact = 1e-10;

/// Whether a network predicts the samples up to rounding, and whether it rests where they rest, too.
bool precise(const Candidate& candidate);
bool exact(const Candidate& candidate);

/// The validation error, but 0 of an exact network; a percent of the resting samples that do not rest counts as much as
/// an error twice as large.
double score(const Candidate& candidate);

/// The Bayesian information criterion [Schwarz] of a mean square error over so many residuals, up to a constant.
/// Parameters on which motion does not depend do not count: the units of an unknown and of its row of the LCP.
double information(const Candidate& candidate, double mean_square, std::int64_t residuals);
double parameters(const Candidate& candidate);

/// The shares of states in which a prediction, [states, outputs] relative to their units, differs from each of the
/// others.
torch::Tensor differences(const torch::Tensor& prediction, const std::vector<torch::Tensor>& others);

/// Whether two predictions agree in all states.
bool confirmed(const std::vector<torch::Tensor>& predictions);

/// Of exact networks, of which there is one or more, the one that agrees most with all precise ones; of several the
/// simplest. predictions: of the precise ones, in their order.
const Candidate& most_agreed(const std::vector<const Candidate*>& candidates,
                             const std::vector<torch::Tensor>& predictions);

/// Of the networks whose scores are the lowest up to chance, and of these only of those that rest where the training
/// samples rest, if there are such, the one with the lowest Bayesian information criterion on all samples, whose
/// numbers of residuals these are. candidates: one or more.
const Candidate& simplest(const std::vector<const Candidate*>& candidates, std::int64_t training_residuals,
                          std::int64_t validation_residuals);

}  // namespace lcp::training
