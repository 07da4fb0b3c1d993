// The kernels of a system that users have written as formulas, see include/lcp/step.h: one trajectory at a time.
#pragma once

#include <string_view>

#include "systems/kernels.h"

namespace lcp::systems {

/// formulas must outlive the system.
System system_of(std::string_view name, const detail::StepFormulas& formulas);

}  // namespace lcp::systems
