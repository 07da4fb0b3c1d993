// Learning f and G of a sliding block from velocities, inputs and known friction forces.
//
//   [Notes] Pfrommer: LCP Notes, 2019 (unpublished; docs/systems.md), sections 3.1.1 and 3.1.2.
#pragma once

#include "lcp/nn/direct_model.h"
#include "run/physics_flags.h"
#include "sliding_block/samples.h"

namespace lcp::training {

/// The programs train_direct, which learns with friction forces, and train_slack, which learns with the slack that they
/// leave to mu m g. Returns the exit status.
int train_direct_model(nn::DirectForces forces, int argc, const char* const* argv);

/// The largest error of f [m/s] and G [s/kg] over the samples, against the block of the flags.
double parameter_error(nn::DirectModel& model, const Samples& samples, const PhysicsFlags& block);

}  // namespace lcp::training
