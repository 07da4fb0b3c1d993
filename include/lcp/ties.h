// Choices for the gradient of lcp::solve where the solution is not smooth.
#pragma once

namespace lcp {

/// How the gradient treats a pair with z_i = w_i = 0; docs/gradients.md shows the effect of each choice.
enum class Ties {
  kInactive,  ///< "inactive": z_i stays 0
  kActive,    ///< "active": w_i stays 0
  kMidpoint,  ///< "midpoint": the mean of both derivatives
};

/// The name of a choice in the operators of Python and TorchScript.
constexpr const char* ties_name(Ties ties) {
  constexpr const char* kNames[] = {"inactive", "active", "midpoint"};
  return kNames[static_cast<int>(ties)];
}

}  // namespace lcp
