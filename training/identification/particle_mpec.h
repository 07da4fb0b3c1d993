// Particles and their tracks as one mathematical program with complementarity constraints [BT].
#pragma once

#include <torch/types.h>

#include "identification/bilinear_program.h"
#include "identification/particle.h"

namespace lcp::training {

/// How far an observation may be from the motion.
struct NoiseBound {
  double size = 0;         ///< m; 0: as far as it is
  bool euclidean = false;  ///< of both coordinates together, as in [BT]; else of each
};

/// The program of all particles: 11 steps + 5 unknowns each, mu, the start, and the states, forces and slacks of each
/// step, from the start of [BT]: observed positions, no forces, mu = 1. Throws std::runtime_error where an observation
/// is farther than the bound from where a particle can be.
BilinearProgram particle_program(const TrackFlags& flags, const TrackProblem& problem, const NoiseBound& bound = {});

/// What is identified of a solution.
struct ParticleEstimate {
  torch::Tensor theta;     ///< [b, p], as ParticleModel has it
  torch::Tensor residual;  ///< [b], m/s: how far the velocities are from the solutions of the steps' LCPs, each from
                           ///< the state before
};
ParticleEstimate read_particles(const TrackFlags& flags, const TrackProblem& problem, const MpecSolution& solution);

}  // namespace lcp::training
