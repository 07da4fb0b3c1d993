#include "linalg/scale.h"

#include <bit>
#include <cmath>
#include <cstdint>

#include "linalg/kernels.h"

namespace lcp::linalg {
namespace {

constexpr int kBias = 1023;
constexpr int kMantissa = 52;

// 2^exponent; std::ldexp takes longer than solving a small problem allows.
double power(int exponent) {
  if (exponent <= -kBias || exponent > kBias) return std::ldexp(1.0, exponent);
  return std::bit_cast<double>(static_cast<std::uint64_t>(kBias + exponent) << kMantissa);
}

}  // namespace

PowerOfTwo::PowerOfTwo(int exponent) : first_(power(exponent / 2)), second_(power(exponent - exponent / 2)) {}

bool PowerOfTwo::scale(const double* x, std::size_t count, double* scaled) const {
  return kernels().rows.scale(static_cast<std::int64_t>(count), x, first_, second_, scaled);
}

double largest_magnitude(const double* x, std::size_t count) {
  return kernels().rows.largest(static_cast<std::int64_t>(count), x);
}

int exponent_of(double x) {
  const auto field = static_cast<int>(std::bit_cast<std::uint64_t>(x) >> kMantissa & 2047);
  if (field != 0 && field != 2047) return field - kBias + 1;
  int exponent = 0;
  std::frexp(x, &exponent);
  return exponent;
}

}  // namespace lcp::linalg
