// The derivative where there is no solution to differentiate.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <limits>

namespace lcp::solver {

/// The value of every component of such a derivative: 0 where all arguments, n numbers each, are 0, else NaN.
inline double unsolved_derivative(std::initializer_list<const double*> arguments, int n) {
  const bool zero = std::all_of(arguments.begin(), arguments.end(), [n](const double* x) {
    return std::all_of(x, x + n, [](double value) { return value == 0; });
  });
  return zero ? 0.0 : std::numeric_limits<double>::quiet_NaN();
}

}  // namespace lcp::solver
