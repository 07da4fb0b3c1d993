// Learning f and G of a sliding block from velocities, inputs and known friction forces.
//
//   [Notes] Pfrommer: LCP Notes, 2019 (unpublished; docs/systems.md), sections 3.1.1 and 3.1.2.
#pragma once

#include "lcp/nn/direct_model.h"

namespace lcp::training {

/// The programs train_direct, which learns with friction forces, and train_slack, which learns with the slack that they
/// leave to mu m g. Returns the exit status.
int train_direct_model(nn::DirectForces forces, int argc, const char* const* argv);

}  // namespace lcp::training
