// Independent streams of random numbers from one seed.
#pragma once

#include <ATen/core/Generator.h>

#include <cstdint>

#include "lcp/detail/seeded_generator.h"

namespace lcp::training {

/// The purposes of random numbers. Each has its own stream, which depends on the enumerator's value: new purposes go to
/// the end, so that a seed keeps its meaning.
enum class Stream : std::uint64_t {
  kSimulatedForces,
  kForces,
  kSpeeds,
  kRolloutForces,
  kRolloutSpeeds,
  kParameters,
  kMinibatches,
  kStarts,
  kVelocityNoise,
  kPositionNoise,
  kForceSplits,
  kMatrixNoise,
  kVectorNoise,
  kFilter,
  kRandomStates,
  kBlackBoxes,
  kProcessNoise,
  kHiddenStates,
  kBranches,
  kTosses,
  kWindows,
  kHeldoutTosses
};

/// A generator for the k-th use of a stream. seed: in [0, 2^32).
inline at::Generator generator(std::int64_t seed, Stream stream, std::int64_t k = 0) {
  return detail::seeded_generator(seed, static_cast<std::uint64_t>(stream), k);
}

}  // namespace lcp::training
