#include "solver/scale.h"

#include <cmath>
#include <limits>

namespace lcp::solver {

PowerOfTwo::PowerOfTwo(int exponent)
    : first_(std::ldexp(1.0, exponent / 2)), second_(std::ldexp(1.0, exponent - exponent / 2)) {}

double largest_magnitude(const double* x, std::size_t count) {
  double largest = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const double magnitude = std::abs(x[i]);
    if (!(magnitude <= largest)) largest = magnitude;  // keeps a NaN or an infinity
    if (!std::isfinite(largest)) return std::numeric_limits<double>::infinity();
  }
  return largest;
}

int exponent_of(double x) {
  int exponent = 0;
  std::frexp(x, &exponent);
  return exponent;
}

bool has_normal_image(const double* x, const double* scaled, std::size_t count) {
  bool normal = true;
  for (std::size_t i = 0; i < count; ++i) {
    normal &= x[i] == 0 || std::abs(scaled[i]) >= std::numeric_limits<double>::min();
  }
  return normal;
}

}  // namespace lcp::solver
