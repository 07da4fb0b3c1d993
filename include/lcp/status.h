// The outcome of a solve for one element of a batch.
#pragma once

#include <cstdint>

namespace lcp {

/// Each value is defined by a condition on z and w of that element; see docs/notation.md for r(z). solve_contact.h and
/// solve_friction.h define the values for lcp::solve_contact and lcp::solve_friction.
enum class Status : std::int8_t {
  kSolved = 0,  ///< r(z) <= tolerance * max_i |q_i|, checked on the returned z; z, w >= 0, z_i w_i = 0 exactly
  /// No solution was found. For n <= 10 and Method::kAuto there is none, up to rounding and the range of the dtype;
  /// else there may be one. z, w are NaN.
  kNotFound = 1,
  kInfeasible = 2,  ///< proved: no z >= 0 has M z + q >= 0; z, w are NaN
  /// The caller's max_pivots was reached, or, for n > 10, the limit of the method that the caller named: a larger
  /// max_pivots may find a solution. z, w are NaN.
  kPivotLimit = 3,
  kBadInput = 4,  ///< a NaN or an infinity in M or q; z, w are NaN
};

/// "solved", "not found", "infeasible", "pivot limit" or "bad input".
constexpr const char* status_name(Status status) {
  constexpr const char* kNames[] = {"solved", "not found", "infeasible", "pivot limit", "bad input"};
  return kNames[static_cast<int>(status)];
}

}  // namespace lcp
