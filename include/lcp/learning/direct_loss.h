// The loss of learning a block's velocity from known friction forces.
//
//   [Notes] Pfrommer: LCP Notes, 2019 (unpublished; docs/systems.md), section 3.1.1.
#pragma once

#include <ATen/core/Tensor.h>

#include "lcp/export.h"

namespace lcp::learning {

struct DirectLossWeights {
  double prediction = 1;
  double complementarity = 0.01;
  double nonnegativity = 1;
  bool squared = false;  ///< squares the norm of the error of the prediction
  bool resting = true;   ///< applies the nonnegativity term also to components whose target is 0
};

/// Each a scalar, the mean over the batch.
struct DirectLoss {
  at::Tensor total;            ///< the weighted sum
  at::Tensor prediction;       ///< |x_hat - x|_2, m/s, or its square
  at::Tensor complementarity;  ///< |lambda o x_hat|_1, m/s times the unit of lambda
  at::Tensor nonnegativity;    ///< |max(0, -h)|_1, m/s, of all components or of those with a target that is not 0
};

/// The three-term loss [Notes, 3.1.1]:
///
///   c = a1 |x_hat - x|_2 + a2 |lambda o x_hat|_1 + a3 |max(0, -h)|_1
///
/// Here h are the velocities before the relu head, and x_hat = relu(h), or h for a model without a head.
///
/// The norm of the error is not squared: the truth then is the minimiser as long as the gradients of the other terms
/// are small against a1. With a squared norm, any a2 > 0 moves the minimiser where forces are not complementary to
/// their velocities. The fictitious forces of the direct formulation are not complementary.
///
/// The last term is a function of h, since relu(h) is never negative: without it h of a resting component could have
/// any negative value. With physical forces the true h of a resting component is negative. Then the term should be
/// applied to components that move only (resting = false): it keeps h of these from becoming negative, where the head
/// has no gradient.
///   h: [..., 2], m/s, (v+, v-) before the head. target: [..., 2], m/s. lambda: [..., 2], in any unit of force.
///   relu: whether the model has a relu head.
LCP_API DirectLoss direct_loss(const at::Tensor& h, const at::Tensor& target, const at::Tensor& lambda, bool relu,
                               const DirectLossWeights& weights);

}  // namespace lcp::learning
