// The loss of learning a block's velocity from known friction forces.
//
//   [Notes] Pfrommer: LCP Notes, 2019, section 3.1.1.
#pragma once

#include <ATen/core/Tensor.h>

namespace lcp::learning {

struct DirectLossWeights {
  double prediction = 1;
  double complementarity = 0.01;
  double nonnegativity = 1;
};

/// Each a scalar, the mean over the batch.
struct DirectLoss {
  at::Tensor total;            ///< the weighted sum
  at::Tensor prediction;       ///< |x_hat - x|_2, m/s
  at::Tensor complementarity;  ///< |lambda o x_hat|_1, m/s times the unit of lambda
  at::Tensor nonnegativity;    ///< |max(0, -h)|_1, m/s
};

/// The three-term loss [Notes, 3.1.1]:
///
///   c = a1 |x_hat - x|_2 + a2 |lambda o x_hat|_1 + a3 |max(0, -h)|_1
///
/// with h the velocities before the head and x_hat = relu(h), or h where there is no head. The norm of the error is
/// not squared, so that the truth stays the minimiser while the other terms' gradients are small against a1. The last
/// term sees h: x_hat = relu(h) is never negative, and a head alone leaves open how far below 0 a resting component is.
///   h: [..., 2], m/s, (v+, v-) before the head. target: [..., 2], m/s. lambda: [..., 2],
/// in any unit of force. relu: whether x_hat has it.
DirectLoss direct_loss(const at::Tensor& h, const at::Tensor& target, const at::Tensor& lambda, bool relu,
                       const DirectLossWeights& weights);

}  // namespace lcp::learning
