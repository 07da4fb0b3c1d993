#include "lcp/detail/seeded_generator.h"

#include <ATen/CPUGeneratorImpl.h>

namespace lcp::detail {
namespace {

// One step of splitmix64 [Steele, Lea, Flood: Fast splittable pseudorandom number generators, OOPSLA, 2014].
std::uint64_t mixed(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

}  // namespace

at::Generator seeded_generator(std::int64_t seed, std::uint64_t stream, std::int64_t k) {
  const std::uint64_t state =
      mixed(mixed(mixed(static_cast<std::uint64_t>(seed)) + stream) + static_cast<std::uint64_t>(k));
  return at::make_generator<at::CPUGeneratorImpl>(state >> 32);  // CPUGeneratorImpl takes a seed of 32 bits
}

}  // namespace lcp::detail
