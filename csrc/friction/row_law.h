// The law of a row, a constraint in one dimension, for the CPU: its impulse h lies in an interval [lower, upper], whose
// ends may be infinite, and its velocity s obeys
//
//   s >= 0 where h = lower,   s <= 0 where h = upper,   s = 0 between.
//
// With [0, inf] it is a stop, such as the limit of a joint, with [-r, r] dry friction, and with [-inf, inf] an
// equation.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace lcp::friction {

enum class RowState : std::int8_t {
  kLower,  ///< h = lower
  kFree,   ///< s = 0
  kUpper,  ///< h = upper
};

/// The state in which h and s, in the same unit, are nearest to the law.
inline RowState row_state(double h, double s, double lower, double upper) {
  const double z = h - s;
  if (z <= lower) return RowState::kLower;
  return z >= upper ? RowState::kUpper : RowState::kFree;
}

/// The distance of h and s, in the same unit, to an impulse and a velocity that obey the law: both do so after changes
/// of this size. NaN where a number is NaN.
inline double row_error(double h, double s, double lower, double upper) {
  if (std::isnan(h + s)) return h + s;
  const double at_lower = std::max(std::abs(h - lower), -s), at_upper = std::max(std::abs(h - upper), s);
  const double between = std::max({std::abs(s), lower - h, h - upper});
  return std::min({at_lower, at_upper, between});
}

}  // namespace lcp::friction
