// A guard for computations whose results must not depend on --threads.
#pragma once

#include "lcp/detail/one_thread.h"

namespace lcp::training {

using detail::OneThread;

}  // namespace lcp::training
