// Trajectories of masses thrown on compliant ground, simulated or read from a file, and how far rollouts are from them.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <string>

#include "lcp/physics/compliant_particle.h"
#include "run/command_line.h"
#include "run/physics_flags.h"

namespace lcp::training {

struct ThrownMassFlags {
  PhysicsFlags physics{.mass = 1, .dt = 0.01, .mu = 0.5};
  double stiffness = 1000;    // N/m
  double dissipation = 0.02;  // s
  RegularizationOptions regularization;
  std::string data;
  std::int64_t trajectories = 20, steps = 60;
  double height = 0.05, speed = 1;  // on average
  double position_noise = 1e-4, velocity_noise = 1e-3;

  void add_to(CommandLine& line);

  /// To be called once the command line is parsed. Throws a UsageError where flags exclude each other, and makes the
  /// path of the file absolute.
  void validate(const CommandLine& line);

  physics::CompliantParticle particle(const torch::Tensor& mu, const torch::Tensor& stiffness) const;
};

/// Measured states of b masses: [steps + 1, b, 3], m and m/s, float64.
struct ThrownMasses {
  torch::Tensor position, velocity;

  std::int64_t count() const { return position.size(1); }
  ThrownMasses at(const torch::Tensor& trajectories) const;
  ThrownMasses to(torch::ScalarType dtype) const { return {position.to(dtype), velocity.to(dtype)}; }

  /// Whether all trajectories stay in the plane y = 0.
  bool in_plane() const;
};

/// Training data and the one trajectory in five that is held out.
struct ThrownMassData {
  ThrownMasses training, heldout;
};

/// Reads --data, of equally long trajectories, or simulates. Throws a UsageError that names the file.
ThrownMassData load_thrown_masses(const ThrownMassFlags& flags, std::int64_t seed);

/// How far rollouts are from the measured trajectories: the mean square error of the velocities, and that of the
/// positions divided by the square of the duration, both relative to `unit`, (m/s)^2.
struct Misfit {
  torch::Tensor velocity, position;
  torch::Tensor total() const { return velocity + position; }
};

/// The misfit of rollouts from the first measured state of each trajectory.
Misfit compliant_misfit(const ThrownMasses& masses, const physics::CompliantParticle& particle, double unit);

/// The same for rigid ground by lcp::solve, in the plane y = 0. It is computed to compare its gradient in mu with that
/// of compliant ground.
Misfit rigid_misfit(const ThrownMasses& masses, const ThrownMassFlags& flags, const torch::Tensor& mu, double unit);

/// Root mean square error of the velocities of rollouts, m/s.
double velocity_rmse(const ThrownMasses& masses, const physics::CompliantParticle& particle);

}  // namespace lcp::training
