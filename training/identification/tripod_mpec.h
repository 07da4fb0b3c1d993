// Blocks on three supports and their tracks as one mathematical program with complementarity constraints.
#pragma once

#include "identification/track_program.h"
#include "identification/tripod.h"

namespace lcp::training {

/// The program of all blocks. A step with n directions has 6 n + 17 unknowns, and 3 more with random forces.
TrackProgram tripod_program(const TripodTrackFlags& flags, const TrackProblem& problem, const NoiseBound& bound = {});

/// The forces are the sums over the supports: `normal`, `friction_x`, `friction_y` and `moment` about the centre.
ProgramMotion read_tripods(const TripodTrackFlags& flags, const TrackProgram& program, const MpecSolution& solution,
                           const TrackModel& model);

}  // namespace lcp::training
