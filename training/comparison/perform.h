// One run of compare_methods.
#pragma once

#include <nlohmann/json.hpp>

#include "comparison/plan.h"
#include "run/interrupt.h"
#include "run/output_folder.h"

namespace lcp::training {

/// Runs the program of a run in a folder inside `out`, unless `resuming` and the run is complete. Returns its metrics
/// and the time that it took, s; or an object with "error" or "not_built".
///   interrupt: its signal is passed on to the program.
nlohmann::json perform(OutputFolder& out, const ComparisonRun& run, const ComparisonFlags& flags, bool resuming,
                       const Interrupt& interrupt);

}  // namespace lcp::training
