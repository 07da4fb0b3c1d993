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
  bool squared = false;  ///< the prediction's error
  bool resting = true;   ///< whether nonnegativity is asked of components whose target is 0, too
};

/// Each a scalar, the mean over the batch.
struct DirectLoss {
  at::Tensor total;            ///< the weighted sum
  at::Tensor prediction;       ///< |x_hat - x|_2, m/s, or its square
  at::Tensor complementarity;  ///< |lambda o x_hat|_1, m/s times the unit of lambda
  at::Tensor nonnegativity;    ///< |max(0, -h)|_1, m/s, of all components or those that move
};

/// The three-term loss [Notes, 3.1.1]:
///
///   c = a1 |x_hat - x|_2 + a2 |lambda o x_hat|_1 + a3 |max(0, -h)|_1
///
/// with h the velocities before the head and x_hat = relu(h), or h where there is no head. The norm of the error is
/// not squared, so that the truth stays the minimiser while the other terms' gradients are small against a1; squared,
/// any a2 > 0 moves the minimiser where forces are not complementary to their velocities, as fictitious ones are not.
/// The last term sees h: x_hat = relu(h) is never negative, and a head alone leaves open how far below 0 a resting
/// component is. With physical forces the true h of such a component is negative; the term then only keeps those that
/// move from being lost below the head, where there is no gradient.
///   h: [..., 2], m/s, (v+, v-) before the head. target: [..., 2], m/s. lambda: [..., 2], in any unit of force.
///   relu: whether x_hat has it.
DirectLoss direct_loss(const at::Tensor& h, const at::Tensor& target, const at::Tensor& lambda, bool relu,
                       const DirectLossWeights& weights);

}  // namespace lcp::learning
