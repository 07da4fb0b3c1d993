// Scenes of rigid bodies for tests.
#pragma once

#include <cmath>
#include <utility>
#include <vector>

#include "lcp/physics/rigid_scene.h"
#include "support/tensors.h"

namespace lcp::testing {

constexpr double kGravity = 9.81;

/// Bodies on a plane that descends along x by `slope`, rad.
inline physics::RigidScene scene_of(std::vector<physics::RigidBody> bodies, double dt, double mu = 0.5,
                                    double restitution = 0, double slope = 0) {
  return {std::move(bodies),
          {physics::Plane::inclined(slope)},
          dt,
          numbers({0, 0, -kGravity}),
          numbers({mu}),
          numbers({restitution}),
          numbers({1e6}),
          numbers({0.02})};
}

/// A body at `position` with the orientation `quaternion`.
inline physics::RigidState pose(const std::vector<double>& position,
                                const std::vector<double>& quaternion = {1, 0, 0, 0}) {
  physics::RigidState state = physics::RigidState::at_rest(numbers(position).view({1, 3}));
  state.orientation = numbers(quaternion).view({1, 4});
  return state;
}

inline torch::Tensor no_forces(std::int64_t rows, std::int64_t bodies = 1) {
  return torch::zeros({rows, bodies, 6}, torch::kDouble);
}

/// `count` cubes of 10 cm, each on the plane that is the top of the one below, with the given shift along x of each
/// against the one below.
struct Stack {
  physics::RigidScene scene;
  physics::RigidState state;

  explicit Stack(std::int64_t count, double shift = 0.01) : scene(scene_of({}, 0.01)), state(pose({0, 0, 0})) {
    std::vector<double> positions;
    for (std::int64_t b = 0; b < count; ++b) {
      scene.bodies.push_back(physics::RigidBody::box(1, {0.1, 0.1, 0.1}));
      if (b > 0) scene.planes.push_back({numbers({0, 0, 1}), number(0.05), b - 1, {b}});
      positions.insert(positions.end(), {b % 2 == 0 ? 0 : shift, 0, 0.05 + 0.1 * static_cast<double>(b)});
    }
    state = physics::RigidState::at_rest(numbers(positions).view({count, 3}));
  }
};

}  // namespace lcp::testing
