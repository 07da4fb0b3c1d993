// The steps that users have registered, see include/lcp/step.h.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "lcp/step.h"

namespace lcp::ops {

/// Never throws for a fault of the step, which registered_step and kind_of say.
void add_step(std::string name, std::unique_ptr<const detail::RegisteredStep> step);

/// Throws c10::Error where there is no step of this name, or where it does not keep the rules of step.h.
const detail::RegisteredStep& registered_step(std::string_view name);

}  // namespace lcp::ops
