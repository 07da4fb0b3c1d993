// What the gradient of lcp::solve is where the solution is not smooth.
#pragma once

namespace lcp {

/// What the gradient takes a pair with z_i = w_i = 0 for; docs/gradients.md shows what each choice does.
enum class Ties {
  kInactive,  ///< "inactive": z_i stays 0
  kActive,    ///< "active": w_i stays 0
  kMidpoint,  ///< "midpoint": the mean of both derivatives
};

/// The name by which the operators of Python and TorchScript take a choice for ties.
constexpr const char* ties_name(Ties ties) {
  constexpr const char* kNames[] = {"inactive", "active", "midpoint"};
  return kNames[static_cast<int>(ties)];
}

}  // namespace lcp
