// Links a global operator new that counts.
#pragma once

namespace lcp::testing {

/// Calls of operator new by this program so far.
long allocations();

}  // namespace lcp::testing
