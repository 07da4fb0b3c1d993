// Options that several tests of the planar block use.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <vector>

#include "lcp/physics/planar_block.h"

namespace lcp::physics {

inline constexpr auto kFormulations = {PlanarBlockFormulation::kExactDirection, PlanarBlockFormulation::kFixedPoint,
                                       PlanarBlockFormulation::kPolyhedral};
inline constexpr auto kNumbersOfDirections = {4, 6, 8, 16, 32, 64};

inline PlanarBlockOptions options_of(PlanarBlockFormulation formulation, std::int64_t directions = 8) {
  PlanarBlockOptions options;
  options.formulation = formulation;
  options.directions = directions;
  return options;
}

inline PlanarBlockOptions passes_of(std::int64_t max_passes, bool relaxed = false, std::int64_t directions = 8) {
  PlanarBlockOptions options = options_of(PlanarBlockFormulation::kFixedPoint, directions);
  options.max_passes = max_passes;
  options.relaxed = relaxed;
  return options;
}

/// S = dt mu g = 0.5 and m / dt = 16, without rounding.
inline PlanarBlock dyadic_block() { return PlanarBlock::of(2, 0.125, 0.5, 8); }

inline torch::Tensor exact_rollout(const torch::Tensor& v, const torch::Tensor& u, const PlanarBlock& block) {
  torch::Tensor now = v;
  std::vector<torch::Tensor> all;
  all.reserve(u.size(0));
  for (std::int64_t k = 0; k < u.size(0); ++k) all.push_back(now = exact_step(now, u[k], block).v_next);
  return torch::stack(all);
}

}  // namespace lcp::physics
