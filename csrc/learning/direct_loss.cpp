#include "lcp/learning/direct_loss.h"

#include <ATen/ATen.h>

namespace lcp::learning {

DirectLoss direct_loss(const at::Tensor& h, const at::Tensor& target, const at::Tensor& lambda, bool relu,
                       const DirectLossWeights& weights) {
  const at::Tensor predicted = relu ? h.relu() : h;
  DirectLoss loss;
  const at::Tensor error = predicted - target;
  loss.prediction = (weights.squared ? error.square().sum(-1) : error.norm(2, -1)).mean();
  loss.complementarity = (lambda * predicted).abs().sum(-1).mean();
  const at::Tensor negative = (-h).relu();
  loss.nonnegativity = (weights.resting ? negative : negative * (target > 0)).sum(-1).mean();
  loss.total = weights.prediction * loss.prediction + weights.complementarity * loss.complementarity +
               weights.nonnegativity * loss.nonnegativity;
  return loss;
}

}  // namespace lcp::learning
