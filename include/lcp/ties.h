// Choices for the gradient of lcp::solve where the solution is not smooth.
#pragma once

#include <array>
#include <cstddef>

namespace lcp {

/// The gradient at a pair with z_i = w_i = 0; docs/gradients.md shows the effect of each choice.
enum class Ties {
  kInactive,  ///< "inactive": z_i stays 0
  kActive,    ///< "active": w_i stays 0
  kMidpoint,  ///< "midpoint": the mean of both derivatives
};

/// The names by which the operators of Python and TorchScript take a choice for ties, in the order of the enum.
inline constexpr std::array kTiesNames = {"inactive", "active", "midpoint"};

constexpr const char* ties_name(Ties ties) { return kTiesNames[static_cast<std::size_t>(ties)]; }

}  // namespace lcp
