// One run of compare_methods.
#pragma once

#include <nlohmann/json.hpp>

#include "comparison/plan.h"
#include "run/interrupt.h"

namespace lcp::training {

/// Runs the program, unless `resuming` finds it complete. Its metrics, with the time that all of it took, s; or one of
/// "error" and "not_built".
///   interrupt: what this notes is passed on to the program.
nlohmann::json perform(const Run& run, const ComparisonFlags& flags, bool resuming, const Interrupt& interrupt);

}  // namespace lcp::training
