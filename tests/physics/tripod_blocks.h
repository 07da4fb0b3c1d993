// What the tests of the tripod share.
#pragma once

#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <cstdint>

#include "lcp/physics/tripod.h"
#include "support/tensors.h"

namespace lcp::physics::tripod_test {

using testing::numbers;
using torch::Tensor;

inline Tensor none(std::int64_t steps) { return torch::zeros({steps, 3}, torch::kDouble); }

// A square block with edges of 0.1 m.
inline Tripod block(double com_height = 0) { return Tripod::of(1, 0.01 / 6, 0.005, 0.33, 9.81, com_height); }

inline TripodState launched() { return {torch::zeros({3}, torch::kDouble), numbers({1, 0.3, 8})}; }

// Loads of 4, 2 and 2 N, and 0.5 m/s that friction takes of a translation: no round-off.
inline Tripod dyadic_block() {
  Tripod tripod = Tripod::of(1, 1.0 / 128, 0.125, 0.5, 8);
  tripod.supports = numbers({0.0625, 0, -0.0625, 0.0625, -0.0625, -0.0625}).view({3, 2});
  return tripod;
}

inline Tensor arms_of(const Tensor& theta, const Tensor& supports) {
  const Tensor c = theta.cos().unsqueeze(-1), s = theta.sin().unsqueeze(-1);
  const Tensor x = supports.select(-1, 0), y = supports.select(-1, 1);
  return torch::stack({c * x - s * y, s * x + c * y}, -1);
}

// Blocks that slide and turn, that are about to stop, and that turn about one of their supports.
inline TripodState random_states(std::int64_t b, const Tripod& tripod) {
  const Tensor pose = torch::randn({b, 3}, torch::kDouble);
  Tensor velocity = torch::randn({b, 3}, torch::kDouble) * numbers({0.3, 0.3, 6});
  velocity.slice(0, b / 3, 2 * b / 3) *= 0.03;
  const Tensor arms = arms_of(pose.select(-1, 2), tripod.supports).slice(0, 2 * b / 3);
  const Tensor omega = velocity.slice(0, 2 * b / 3).select(-1, 2);
  const std::int64_t pivot = 1;
  velocity.slice(0, 2 * b / 3) =
      torch::stack({omega * arms.select(1, pivot).select(-1, 1), -omega * arms.select(1, pivot).select(-1, 0), omega},
                   -1) +
      torch::randn({b - 2 * b / 3, 3}, torch::kDouble) * numbers({0.003, 0.003, 0});
  return {pose, velocity};
}

class TripodTest : public ::testing::Test {
 protected:
  void SetUp() override { torch::manual_seed(17); }
};

}  // namespace lcp::physics::tripod_test
