// The parameters from which a round of the search starts. Tests call what is exported.
//
//   [Mallat, Zhang] Mallat, Zhang: Matching pursuits with time-frequency dictionaries, IEEE Transactions on Signal
//           Processing 41, 1993.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <vector>

#include "lcp/export.h"
#include "lcp/learning/network_search.h"

namespace lcp::learning::fitting {

/// Starts that are ranked against each other: the search drops the worst of each group.
struct StartGroup {
  torch::Tensor theta;  ///< [starts, size()]
  double rest_penalty;  ///< FitPenalties::rest
};

/// `count` starts for a network. A quarter of them grow from the parents, if there are any: each has the unknowns of
/// one of these that some sample has active, and new ones; the others are random. Where the parents have more unknowns
/// than the network, the starts are instead the parents without one of their unknowns, and without two, with a new one.
/// Each new unknown is the one of some random ones whose z explains most of the errors that the others leave, as in a
/// matching pursuit [Mallat, Zhang].
///   samples: those to learn from. rest_penalty: of all starts that have fewer unknowns than their parents, and of half
///   of the others, which are groups of their own.
LCP_API std::vector<StartGroup> draw_starts(const nn::LcpNetwork& network, std::int64_t count,
                                            const std::vector<NetworkCandidate>& parents, const Samples& samples,
                                            double rest_penalty, const at::Generator& numbers);

}  // namespace lcp::learning::fitting
