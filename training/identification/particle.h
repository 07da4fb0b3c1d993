// Particles that fall and slide, of which tracks are known: what their friction and their start do to the tracks.
//
//   [BT] Berard, Trinkle: An MPEC formulation for parameter identification of complementarity systems, 2008.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "common/command_line.h"
#include "common/physics_flags.h"
#include "identification/tracks.h"
#include "lcp/identification/least_squares.h"
#include "lcp/physics/point_mass.h"

namespace lcp::training {

/// Flags of the programs that identify particles. What is simulated is the example of [BT].
struct ParticleFlags {
  PhysicsFlags block{.mass = 1, .dt = 0.05, .mu = 0.2, .gravity = 9.81};
  std::int64_t particles = 1;
  std::int64_t steps = 100;
  double noise = 5e-3;                    ///< m, half the width of the uniform noise on each coordinate
  std::vector<double> force = {5, 0};     ///< N
  std::vector<double> position = {0, 3};  ///< m, of the first particle's start
  std::vector<double> velocity = {0, 0};  ///< m/s
  std::string data = {};
  std::string estimate = "mu,q0";
  double initial_mu = 0.05;
  double prior = 0;

  void add_to(CommandLine& line);

  /// Once the command line is parsed: a UsageError where flags exclude each other; the file by its full path.
  void settle(const CommandLine& line, const RunFlags& run);
};

/// What is known of particles, and what is asked.
struct ParticleProblem {
  Tracks tracks;
  physics::PointMassState start;  ///< [b, 2], what is known of it where it is not asked
  torch::Tensor mu;               ///< [b], of those that were simulated; undefined for a file
  double noise;  ///< m, standard deviation of each coordinate; NaN where it has to be taken from the residuals
};

/// Reads --data, or simulates --particles.
ParticleProblem load_particles(const RunFlags& run, const ParticleFlags& flags);

/// The simulated particles again, with the noise of `repeats` further seeds: repeats b tracks.
ParticleProblem repeat_particles(const RunFlags& run, const ParticleFlags& flags, std::int64_t repeats);

/// The unknowns theta = (mu[, x, y[, v_x, v_y]]) of each particle, and what they lead to.
class ParticleModel {
 public:
  ParticleModel(const ParticleFlags& flags, const ParticleProblem& problem);

  std::vector<std::string> names() const;
  std::int64_t unknowns() const { return unknowns_; }

  /// [b, p]: this mu, the first observation, the velocity that the first steps show.
  torch::Tensor start(double mu) const;
  torch::Tensor lower() const;  ///< [p]: mu >= 0

  /// theta: [..., b, p]; its leading dimensions are further guesses of the same particles.
  physics::PointMassSolution rollout(const torch::Tensor& theta) const;
  torch::Tensor positions(const torch::Tensor& theta) const;  ///< [steps + 1, ..., b, 2], m

  /// Predicted less observed positions, and what the prior weighs of the start's: [..., b, m].
  torch::Tensor residuals(const torch::Tensor& theta) const;

  /// Of a rollout from theta: [..., b], as RolloutCertificate.
  physics::RolloutCertificate certify(const torch::Tensor& theta, const physics::PointMassSolution& rollout) const;

 private:
  physics::PointMassState start_of(const torch::Tensor& theta) const;
  physics::PointMass mass_of(const torch::Tensor& theta) const;
  torch::Tensor forces() const;  // [steps, b, 2], N

  const ParticleFlags& flags_;
  const ParticleProblem& problem_;
  std::int64_t unknowns_;
};

}  // namespace lcp::training
