#include "lcp/learning/penalty_loss.h"

#include <ATen/ATen.h>

namespace lcp::learning {

PenaltyLoss penalty_loss(const at::Tensor& G, const at::Tensor& f, const at::Tensor& z,
                         const PenaltyLossWeights& weights) {
  const at::Tensor w = f + (G * z.unsqueeze(-2)).sum(-1);
  const auto mean = [&](const at::Tensor& x) { return (weights.squared ? x.square() : x.abs()).sum(-1).mean(); };
  PenaltyLoss loss;
  loss.complementarity = mean(z * w);
  loss.nonnegativity = mean((-w).relu());
  loss.total = weights.complementarity * loss.complementarity + weights.nonnegativity * loss.nonnegativity;
  return loss;
}

}  // namespace lcp::learning
