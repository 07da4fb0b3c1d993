// Particles and their tracks as one mathematical program with complementarity constraints [BT].
#pragma once

#include <torch/types.h>

#include "identification/bilinear_program.h"
#include "identification/particle.h"

namespace lcp::training {

/// The program of all particles: 11 steps + 5 unknowns each, mu, the start, and the states, forces and slacks of each
/// step, from the start of [BT]: observed positions, no forces, mu = 1.
///   bound: m^2, of the squared error of each observation; 0: none.
BilinearProgram particle_program(const TrackFlags& flags, const TrackProblem& problem, double bound = 0);

/// What is identified of a solution.
struct ParticleEstimate {
  torch::Tensor theta;     ///< [b, p], as ParticleModel has it
  torch::Tensor residual;  ///< [b], m/s: how far the velocities are from the solutions of the steps' LCPs, each from
                           ///< the state before
};
ParticleEstimate read_particles(const TrackFlags& flags, const TrackProblem& problem, const MpecSolution& solution);

}  // namespace lcp::training
