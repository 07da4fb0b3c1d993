// Links a malloc that counts; operator new and Eigen use it too.
#pragma once

namespace lcp::testing {

/// Calls of malloc by this program so far.
long allocations();

}  // namespace lcp::testing
