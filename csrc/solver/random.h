// The generator splitmix64 [Steele, Lea, Flood: Fast splittable pseudorandom number generators, OOPSLA 2014], whose
// numbers are the same on every platform.
#pragma once

#include <cstdint>

namespace lcp::solver {

class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  double uniform(double low, double high) {
    std::uint64_t x = (state_ += 0x9e3779b97f4a7c15u);
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    x ^= x >> 31;
    return low + (high - low) * static_cast<double>(x >> 11) * 0x1p-53;
  }

 private:
  std::uint64_t state_;
};

}  // namespace lcp::solver
