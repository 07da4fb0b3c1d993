// The random numbers of a fit to motion.
#pragma once

#include <ATen/core/Generator.h>

#include <cstdint>

#include "lcp/detail/seeded_generator.h"

namespace lcp::identification::motion {

/// What random numbers are for. The values are a part of what a seed means, and those of the programs.
enum class Stream : std::uint64_t { kMinibatches = 6, kStarts = 7, kWindows = 20 };

/// A generator for the k-th use of a stream. k of kMinibatches: the epoch. k of kWindows: the iteration of Adam, and
/// behind the last one the fixed windows, 2 further the starts of the fits to parts of the recordings, and then sums.
inline at::Generator generator(std::int64_t seed, Stream stream, std::int64_t k = 0) {
  return lcp::detail::seeded_generator(seed, static_cast<std::uint64_t>(stream), k);
}

}  // namespace lcp::identification::motion
