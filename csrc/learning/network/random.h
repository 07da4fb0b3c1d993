// The random numbers of a search.
#pragma once

#include <ATen/core/Generator.h>

#include <cstdint>

#include "lcp/detail/seeded_generator.h"

namespace lcp::learning::fitting {

/// What random numbers are for. The values are a part of what a seed means.
enum class Stream : std::uint64_t { kMinibatches = 6, kStarts = 7, kRandomStates = 14 };

/// A generator for the k-th use of a stream. k of kMinibatches: -1 for those that split the samples, -2 for the order
/// of the training samples, else the round that Adam begins.
inline at::Generator generator(std::int64_t seed, Stream stream, std::int64_t k = 0) {
  return lcp::detail::seeded_generator(seed, static_cast<std::uint64_t>(stream), k);
}

}  // namespace lcp::learning::fitting
