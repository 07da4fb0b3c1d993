// A cube that hits the ground with a corner and slides, for tests.
#pragma once

#include <torch/types.h>

#include "lcp/physics/rotation.h"
#include "tosses/cube.h"
#include "tosses/protocols.h"

namespace lcp::training {

/// One of two throws just above the ground, [b, 1] bodies with b = 2.
inline physics::RigidState low_throws() {
  const auto options = torch::kDouble;
  const torch::Tensor turn = torch::tensor({{{0.5, 0.3, -0.2}}, {{-0.2, 0.6, 0.4}}}, options);
  return {torch::tensor({{{0., 0., 0.085}}, {{0.1, 0., 0.08}}}, options), physics::rotation_by(turn),
          torch::tensor({{{0.8, 0.3, -1.2}}, {{-0.5, 0.6, -1.}}}, options),
          torch::tensor({{{3., -2., 1.}}, {{-1., 4., 2.}}}, options)};
}

/// What a camera without errors would record of them.
inline Segments recorded(const Cube& cube, const CubeContact& contact, double rate, std::int64_t steps) {
  const physics::RigidState start = low_throws();
  const physics::RigidState next = roll_out(cube, contact, 1 / rate, start, steps).next;
  return {start, next, torch::full({start.position.size(0)}, steps, torch::kLong)};
}

}  // namespace lcp::training
