// Networks that a search has found, and the choice among them. Tests call what is exported.
//
//   [Schwarz] see lcp/learning/network_search.h
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <vector>

#include "lcp/export.h"
#include "lcp/learning/network_search.h"

namespace lcp::learning::fitting {

/// A network with these options and units.
LCP_API nn::LcpNetwork make_network(const nn::LcpNetworkOptions& options, const torch::Tensor& input_unit,
                                    const torch::Tensor& output_unit);

/// Relative errors below this are round-off.
inline constexpr double kExact = 1e-10;

/// The validation error, but 0 of an exact network; a percent of the resting samples that do not rest counts as much as
/// an error twice as large.
LCP_API double score(const NetworkCandidate& candidate);

/// The Bayesian information criterion [Schwarz] of a mean square error over so many residuals, up to a constant.
/// Parameters on which the map does not depend do not count: the units of an unknown and of its row of the LCP.
LCP_API double information(const NetworkCandidate& candidate, double mean_square, std::int64_t residuals);
LCP_API double parameters(const NetworkCandidate& candidate);

/// The shares of states in which a prediction, [states, outputs] relative to their units, differs from each of the
/// others.
LCP_API torch::Tensor differences(const torch::Tensor& prediction, const std::vector<torch::Tensor>& others);

/// Whether two predictions agree in all states.
LCP_API bool confirmed(const std::vector<torch::Tensor>& predictions);

/// Of exact networks, of which there is one or more, the one that agrees most with all precise ones; of several the
/// simplest. predictions: of the precise ones, in their order.
LCP_API const NetworkCandidate& most_agreed(const std::vector<const NetworkCandidate*>& candidates,
                                            const std::vector<torch::Tensor>& predictions);

/// Of the networks whose scores are the lowest up to chance, and of these only of those that rest where the training
/// samples rest, if there are such, the one with the lowest Bayesian information criterion on all samples, whose
/// numbers of residuals these are. candidates: one or more.
LCP_API const NetworkCandidate& simplest(const std::vector<const NetworkCandidate*>& candidates,
                                         std::int64_t training_residuals, std::int64_t validation_residuals);

}  // namespace lcp::learning::fitting
