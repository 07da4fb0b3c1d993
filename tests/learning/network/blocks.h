// A sliding block, as motion and as the network that predicts it.
#pragma once

#include <torch/types.h>

#include <cmath>

#include "lcp/detail/seeded_generator.h"
#include "lcp/learning/network_search.h"

namespace lcp::learning {

// Steps of a sliding block with dt = m = mu m g = 1.
inline Samples sliding_block(std::int64_t count, std::int64_t seed) {
  const torch::Tensor x = torch::randn({count, 2}, lcp::detail::seeded_generator(seed, 2), torch::kDouble);
  const torch::Tensor s = x.sum(-1, true);
  return {x, (s - 1).relu() - (-s - 1).relu()};
}

inline Samples noisy(Samples motion, std::int64_t seed) {
  const torch::Tensor noise =
      0.1 * torch::randn(motion.y.sizes(), lcp::detail::seeded_generator(seed, 8), torch::kDouble);
  motion.y = motion.y + noise;
  return motion;
}

// The parameters that predict it, of a network with two unknowns: M = I, q = (1 - v - u, 1 + v + u), G = (1, -1).
inline torch::Tensor theta_of_block(const nn::LcpNetwork& network) {
  torch::Tensor theta = torch::zeros(network->size(), torch::kDouble);
  const torch::Tensor signs = torch::tensor({1.0, -1.0}, torch::kDouble);
  network->entry("M", theta).copy_(std::sqrt(1 - network->options.definiteness()) * at::eye(2, torch::kDouble));
  network->entry("G_bias", theta).copy_(signs);
  network->entry("q_weight", theta).copy_(-signs.unsqueeze(-1));
  network->entry("q_bias", theta).fill_(1);
  return theta;
}

}  // namespace lcp::learning
