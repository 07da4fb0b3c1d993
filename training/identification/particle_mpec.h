// Particles and their tracks as one mathematical program with complementarity constraints.
//
//   [BT] Berard, Trinkle: An MPEC formulation for parameter identification of complementarity systems, 2008.
#pragma once

#include "identification/particle.h"
#include "identification/track_program.h"

namespace lcp::training {

/// The program of all particles. Each has 11 steps + 5 unknowns, and 2 more in each step with random forces.
TrackProgram particle_program(const TrackFlags& flags, const TrackProblem& problem, const NoiseBound& bound = {});

/// The forces are `normal` and `friction`, in the direction of x.
ProgramMotion read_particles(const TrackProgram& program, const MpecSolution& solution, const TrackModel& model);

}  // namespace lcp::training
