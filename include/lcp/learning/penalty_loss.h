// The loss of learning an LCP from its known solutions: their violation of the LCP.
//
//   [Notes] Pfrommer: LCP Notes, 2019 (unpublished; docs/systems.md), section 3.1.3.
#pragma once

#include <ATen/core/Tensor.h>

#include "lcp/export.h"

namespace lcp::learning {

struct PenaltyLossWeights {
  double complementarity = 1;
  double nonnegativity = 1;
  bool squared = false;  ///< squares instead of absolute values
};

/// Each a scalar, the mean over the batch of a sum over the rows.
struct PenaltyLoss {
  at::Tensor total;            ///< the weighted sum
  at::Tensor complementarity;  ///< |z o w|
  at::Tensor nonnegativity;    ///< max(0, -w)
};

/// Soft complementarity and nonnegativity of w = G z + f [Notes, 3.1.3]:
///
///   c = a1 |z o w|_1 + a2 |max(0, -w)|_1
///
/// It is convex in G and f and 0 at the truth, but 0 at G = 0, f = 0 as well: the scale of each row must be fixed, for
/// example by holding one of its entries.
///   G: [..., n, n]. f: [..., n]. z: [..., n], the known solutions, >= 0.
LCP_API PenaltyLoss penalty_loss(const at::Tensor& G, const at::Tensor& f, const at::Tensor& z,
                                 const PenaltyLossWeights& weights);

}  // namespace lcp::learning
