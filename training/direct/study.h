// Compares the losses, the heads and the kinds of force with which f and G can be learned.
#pragma once

#include "run/command_line.h"
#include "run/physics_flags.h"
#include "sliding_block/samples.h"

namespace lcp::training {

/// Fits the variants of [Notes, 3.1.1 and 3.1.2] to simulated data of the flags' block and writes table.md and, of the
/// same rows, table.json. Throws a UsageError where --out holds a trained model.
void study(const CommandLine& line, const RunFlags& run, const TrainingFlags& training, const PhysicsFlags& block,
           const SampleFlags& samples);

}  // namespace lcp::training
