// Independent streams of random numbers from one seed.
#pragma once

#include <ATen/core/Generator.h>

#include <cstdint>

#include "lcp/export.h"

namespace lcp::detail {

/// A generator for the k-th use of a stream. seed: in [0, 2^32).
LCP_API at::Generator seeded_generator(std::int64_t seed, std::uint64_t stream, std::int64_t k = 0);

}  // namespace lcp::detail
