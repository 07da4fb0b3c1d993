#include "tosses/estimate.h"

#include <array>
#include <cmath>
#include <limits>

namespace lcp::training {

double student_95(std::int64_t degrees_of_freedom) {
  constexpr std::array kFew = {12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306};
  if (degrees_of_freedom < 1) return std::numeric_limits<double>::infinity();
  if (degrees_of_freedom <= static_cast<std::int64_t>(kFew.size())) {
    return kFew[static_cast<std::size_t>(degrees_of_freedom) - 1];
  }
  // The first terms of its series about the normal distribution.
  constexpr double z = 1.959964;
  const auto n = static_cast<double>(degrees_of_freedom);
  return z + (z * z * z + z) / (4 * n) + (5 * std::pow(z, 5) + 16 * z * z * z + 3 * z) / (96 * n * n);
}

double half_width_95(std::int64_t groups, std::int64_t parameters) {
  const std::int64_t left = groups - parameters;
  if (left < 1) return std::numeric_limits<double>::infinity();
  return student_95(left) * std::sqrt(static_cast<double>(groups) / static_cast<double>(left));
}

}  // namespace lcp::training
