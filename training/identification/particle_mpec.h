// Particles and their tracks as one mathematical program with complementarity constraints.
//
//   [BT] Berard, Trinkle: An MPEC formulation for parameter identification of complementarity systems, 2008.
#pragma once

#include <torch/types.h>

#include "identification/bilinear_program.h"
#include "identification/particle.h"

namespace lcp::training {

/// A bound on the distance of each observation from the motion.
struct NoiseBound {
  double size = 0;         ///< m; 0: no bound
  bool euclidean = false;  ///< bounds the Euclidean distance, as in [BT]; else each coordinate
};

/// The program of all particles. Each has 11 steps + 5 unknowns: mu, the initial state, and the state, the forces and
/// the slacks of each step. The initial guess is that of [BT]: the observed positions, no forces, mu = 1. Throws
/// std::runtime_error where an observation is farther than the bound from every position that a particle can have.
BilinearProgram particle_program(const TrackFlags& flags, const TrackProblem& problem, const NoiseBound& bound = {});

/// The estimates in a solution of the program.
struct ParticleEstimate {
  torch::Tensor theta;     ///< [b, p], the unknowns of ParticleModel
  torch::Tensor residual;  ///< [b], m/s: the largest difference of a velocity from the exact step that begins at the
                           ///< state before
};
ParticleEstimate read_particles(const TrackFlags& flags, const TrackProblem& problem, const MpecSolution& solution);

}  // namespace lcp::training
