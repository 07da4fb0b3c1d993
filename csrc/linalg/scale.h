// Exact scaling by powers of two.
#pragma once

#include <cstddef>

namespace lcp::linalg {

/// x 2^exponent; in two factors, since 2^1074 alone would overflow.
class PowerOfTwo {
 public:
  explicit PowerOfTwo(int exponent);
  double operator()(double x) const { return x == 0 ? 0.0 : x * first_ * second_; }

  /// Scales each x_i. Returns whether no x_i != 0 became 0 or subnormal; overflow is not looked for.
  bool scale(const double* x, std::size_t count, double* scaled) const;

 private:
  double first_, second_;
};

/// max |x_i|; infinity where an x_i is NaN or infinite.
double largest_magnitude(const double* x, std::size_t count);

/// e with |x| in [2^(e-1), 2^e); 0 for 0.
int exponent_of(double x);

}  // namespace lcp::linalg
